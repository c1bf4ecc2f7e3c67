#include "clefkit/bundle/manifest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

// Reads members of one object; every message names the key's path.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(where_, object, "an object");
  }

  std::string text(const char* key) const {
    const Json& value = member(key);
    if (!value.is_string()) fail(path(key), value, "a string");
    return value.string();
  }

  std::string optional_text(const char* key) const {
    const Json* const value = object_.find(key);
    return value == nullptr || value->is_null() ? std::string() : text(key);
  }

  std::uint64_t integer(const char* key) const {
    const auto value = member(key).as_uint64();
    // Sizes and offsets are later added and multiplied; this leaves room for that.
    if (!value || *value > (std::uint64_t{1} << 53)) {
      fail(path(key), member(key), "a whole number up to 2^53");
    }
    return *value;
  }

  // 0 when it is missing or null.
  std::uint64_t optional_integer(const char* key) const {
    const Json* const value = object_.find(key);
    return value == nullptr || value->is_null() ? 0 : integer(key);
  }

  std::vector<std::uint64_t> integers(const char* key) const {
    std::vector<std::uint64_t> values;
    each(key, [&](const Json& item, const std::string& place) {
      const auto value = item.as_uint64();
      if (!value || *value > std::numeric_limits<std::uint32_t>::max()) {
        fail(place, item, "a whole number below 2^32");
      }
      values.push_back(*value);
    });
    return values;
  }

  std::string sha256(const char* key) const {
    std::string digest = text(key);
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      fail(path(key), Json(digest), "64 lower-case hexadecimal digits");
    }
    return digest;
  }

  double number(const char* key) const {
    const auto value = member(key).as_double();
    if (!value || !std::isfinite(*value)) fail(path(key), member(key), "a finite number");
    return *value;
  }

  bool boolean_or(const char* key, bool otherwise) const {
    const Json* const value = object_.find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_bool()) fail(path(key), *value, "true or false");
    return value->boolean();
  }

  bool has(const char* key) const {
    const Json* const value = object_.find(key);
    return value != nullptr && !value->is_null();
  }

  Reader object(const char* key) const { return {member(key), path(key)}; }

  template <typename Body>
  void each(const char* key, Body&& body) const {
    const Json& value = member(key);
    if (!value.is_array()) fail(path(key), value, "an array");
    for (std::size_t i = 0; i < value.items().size(); ++i) {
      body(value.items()[i], fmt::format("{}[{}]", path(key), i));
    }
  }

  std::string path(const char* key) const { return where_ + "." + key; }

  [[noreturn]] static void fail(std::string where, const Json& found, std::string_view expected) {
    const std::string shown = found.is_string() || found.is_number()
                                  ? to_string(found).substr(0, 60)
                                  : std::string(found.kind_name());
    throw_error(ErrorCode::kCorruptData, std::move(where), "found {}, expected {}", shown,
                expected);
  }

 private:
  const Json& member(const char* key) const {
    const Json* const value = object_.find(key);
    if (value == nullptr) {
      throw_error(ErrorCode::kCorruptData, where_, "has no \"{}\", which a manifest needs", key);
    }
    return *value;
  }

  const Json& object_;
  std::string where_;
};

void check_path(const std::string& path, const std::string& where) {
  const fs::path parsed(path);
  const bool climbs =
      std::ranges::any_of(parsed, [](const fs::path& part) { return part == ".."; });
  if (path.empty() || parsed.is_absolute() || climbs || path.find('\\') != std::string::npos ||
      path.find('\0') != std::string::npos) {
    throw_error(ErrorCode::kCorruptData, where,
                "the path {} leaves the bundle, expected a relative path without \"..\"",
                to_string(Json(path)));
  }
}

FileRecord read_file_record(const Json& item, const std::string& where) {
  const Reader reader(item, where);
  FileRecord file{reader.text("path"), reader.integer("bytes"), reader.sha256("sha256")};
  check_path(file.path, where + ".path");
  return file;
}

BlobWeight read_weight(const Json& item, const std::string& where) {
  const Reader reader(item, where);
  BlobWeight weight;
  weight.name = reader.text("name");
  weight.blob = reader.text("blob");
  check_path(weight.blob, where + ".blob");
  const std::string kind = reader.text("kind");
  if (kind != "lut6" && kind != "fp16") Reader::fail(where + ".kind", Json(kind), "lut6 or fp16");
  weight.kind = kind == "lut6" ? BlobWeight::Kind::kLut6 : BlobWeight::Kind::kFp16;
  weight.offset = reader.integer("offset");
  if (weight.kind == BlobWeight::Kind::kLut6)
    weight.palette_offset = reader.integer("palette_offset");
  reader.each("shape", [&](const Json& size, const std::string& place) {
    const auto value = size.as_uint64();
    if (!value || *value == 0 || *value > std::numeric_limits<std::uint32_t>::max()) {
      Reader::fail(place, size, "a size of at least 1");
    }
    weight.shape.push_back(static_cast<std::size_t>(*value));
  });
  return weight;
}

Json files_to_json(const std::vector<FileRecord>& files) {
  Json array = Json::array();
  for (const FileRecord& file : files) {
    array.push_back(
        Json::object({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}}));
  }
  return array;
}

Json quantization_to_json(const Manifest& manifest) {
  Json tensors = Json::array();
  for (const PalettizedTensor& tensor : manifest.palettized) {
    tensors.push_back(Json::object({{"name", tensor.name},
                                    {"rows", static_cast<std::uint64_t>(tensor.rows)},
                                    {"columns", static_cast<std::uint64_t>(tensor.columns)},
                                    {"relative_rmse", tensor.relative_rmse},
                                    {"max_abs_error", tensor.max_abs_error}}));
  }
  Json kept = Json::array();
  for (const KeptTensor& tensor : manifest.kept) {
    kept.push_back(Json::object(
        {{"name", tensor.name}, {"stored", tensor.stored}, {"reason", tensor.reason}}));
  }
  return Json::object({{"kind", "lut6"},
                       {"bits", 6},
                       {"group_channels", 16},
                       {"palette", manifest.palette},
                       {"rounds", manifest.rounds},
                       {"min_weights", manifest.min_weights},
                       {"tensors", std::move(tensors)},
                       {"kept", std::move(kept)}});
}

Json weights_to_json(const std::vector<BlobWeight>& weights) {
  Json array = Json::array();
  for (const BlobWeight& weight : weights) {
    const bool is_lut6 = weight.kind == BlobWeight::Kind::kLut6;
    Json shape = Json::array();
    for (const std::size_t size : weight.shape) shape.push_back(static_cast<std::uint64_t>(size));
    Json item = Json::object({{"name", weight.name},
                              {"blob", weight.blob},
                              {"kind", is_lut6 ? "lut6" : "fp16"},
                              {"shape", std::move(shape)},
                              {"offset", weight.offset}});
    if (is_lut6) item.set("palette_offset", weight.palette_offset);
    array.push_back(std::move(item));
  }
  return array;
}

Json integers_to_json(const std::vector<std::uint64_t>& values) {
  Json array = Json::array();
  for (const std::uint64_t value : values) array.push_back(value);
  return array;
}

Json ports_to_json(const std::vector<ProgramPort>& ports) {
  Json array = Json::array();
  for (const ProgramPort& port : ports) {
    array.push_back(Json::object({{"name", port.name}, {"shape", integers_to_json(port.shape)}}));
  }
  return array;
}

Json programs_to_json(const std::vector<ProgramRecord>& programs) {
  Json array = Json::array();
  for (const ProgramRecord& program : programs) {
    array.push_back(
        Json::object({{"name", program.name},
                      {"kind", program.kind},
                      {"layers", integers_to_json(program.layers)},
                      {"context", program.context == 0 ? Json() : Json(program.context)},
                      {"mil", program.mil},
                      {"weights", program.weights},
                      {"inputs", ports_to_json(program.inputs)},
                      {"outputs", ports_to_json(program.outputs)}}));
  }
  return array;
}

ProgramRecord read_program(const Json& item, const std::string& place) {
  const Reader reader(item, place);
  ProgramRecord program;
  program.name = reader.text("name");
  program.kind = reader.text("kind");
  program.layers = reader.integers("layers");
  program.context = reader.optional_integer("context");
  program.mil = reader.text("mil");
  program.weights = reader.text("weights");
  check_path(program.mil, reader.path("mil"));
  check_path(program.weights, reader.path("weights"));
  const auto read_ports = [&](const char* key, std::vector<ProgramPort>& ports) {
    reader.each(key, [&](const Json& port, const std::string& port_place) {
      const Reader port_reader(port, port_place);
      ports.push_back({port_reader.text("name"), port_reader.integers("shape")});
    });
  };
  read_ports("inputs", program.inputs);
  read_ports("outputs", program.outputs);
  return program;
}

Json calibration_to_json(const TextScales& scales) {
  if (scales.calibration_sha256.empty()) return {};
  return Json::object({{"sha256", scales.calibration_sha256}, {"tokens", scales.tokens}});
}

MlpScale read_mlp_scale(const Json& item, const std::string& place) {
  const Reader reader(item, place);
  MlpScale scale{.layer = static_cast<std::size_t>(reader.integer("layer")),
                 .factor = reader.integer("factor")};
  if (!std::has_single_bit(scale.factor) || scale.factor > kLargestMlpFactor) {
    Reader::fail(reader.path("factor"), Json(scale.factor), "1, 2, 4, 8 or 16");
  }
  for (const auto& [key, value] : {std::pair{"largest_activation", &scale.largest_activation},
                                   std::pair{"largest_sum", &scale.largest_sum}}) {
    *value = reader.number(key);
    if (!(*value >= 0)) Reader::fail(reader.path(key), Json(*value), "a number from 0 on");
  }
  return scale;
}

// `quantization` says what was done to each tensor of `weights`; the two must tell one story.
void check_quantization(const Manifest& manifest, const std::string& where) {
  std::map<std::string_view, const BlobWeight*> weights;
  for (const BlobWeight& weight : manifest.weights) {
    if (!weights.emplace(weight.name, &weight).second) {
      throw_error(ErrorCode::kCorruptData, where + ".weights", "{} stands twice", weight.name);
    }
  }
  const auto take = [&](const std::string& name, BlobWeight::Kind kind, const char* list) {
    const auto found = weights.find(name);
    if (found == weights.end() || found->second->kind != kind) {
      throw_error(ErrorCode::kCorruptData, where,
                  "quantization.{} has {}, expected an entry of `weights` that is {}", list, name,
                  kind == BlobWeight::Kind::kLut6 ? "lut6" : "fp16");
    }
    const BlobWeight& weight = *found->second;
    weights.erase(found);
    return weight;
  };
  for (const PalettizedTensor& tensor : manifest.palettized) {
    const BlobWeight weight = take(tensor.name, BlobWeight::Kind::kLut6, "tensors");
    if (weight.shape != std::vector{tensor.rows, tensor.columns}) {
      throw_error(
          ErrorCode::kCorruptData, where,
          "quantization.tensors has {} with {} rows and {} columns, expected the shape that "
          "`weights` gives it",
          tensor.name, tensor.rows, tensor.columns);
    }
  }
  for (const KeptTensor& tensor : manifest.kept) {
    if (tensor.stored == "fp16") take(tensor.name, BlobWeight::Kind::kFp16, "kept");
  }
  if (!weights.empty()) {
    throw_error(ErrorCode::kCorruptData, where,
                "`weights` has {}, expected it in quantization.tensors or quantization.kept too",
                weights.begin()->first);
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

Json scales_to_json(const TextScales& scales) {
  Json mlp = Json::array();
  for (const MlpScale& scale : scales.mlp) {
    mlp.push_back(Json::object({{"layer", std::uint64_t{scale.layer}},
                                {"factor", scale.factor},
                                {"largest_activation", scale.largest_activation},
                                {"largest_sum", scale.largest_sum}}));
  }
  return Json::object({{"calibration", calibration_to_json(scales)}, {"mlp", std::move(mlp)}});
}

TextScales scales_from_json(const Json& json, const std::string& where) {
  const Reader reader(json, where);
  TextScales scales;
  if (reader.has("calibration")) {
    const Reader calibration = reader.object("calibration");
    scales.calibration_sha256 = calibration.sha256("sha256");
    scales.tokens = calibration.integer("tokens");
  }
  reader.each("mlp", [&](const Json& item, const std::string& place) {
    scales.mlp.push_back(read_mlp_scale(item, place));
    const std::size_t count = scales.mlp.size();
    if (count > 1 && scales.mlp[count - 1].layer <= scales.mlp[count - 2].layer) {
      Reader::fail(place + ".layer", Json(std::uint64_t{scales.mlp.back().layer}),
                   "layers in their order, each once");
    }
  });
  if (scales.calibration_sha256.empty() && !scales.mlp.empty()) {
    Reader::fail(reader.path("calibration"), Json(), "what the factors were measured on");
  }
  return scales;
}

Json manifest_to_json(const Manifest& manifest) {
  return Json::object(
      {{"format", "clefkit-bundle"},
       {"format_version", kBundleFormatVersion},
       {"producer", Json::object({{"name", "clefkit"}, {"version", manifest.producer_version}})},
       {"source", Json::object({{"repository", text_or_null(manifest.repository)},
                                {"revision", text_or_null(manifest.revision)},
                                {"files", files_to_json(manifest.source_files)}})},
       {"license", manifest.license},
       {"text_only", manifest.text_only},
       {"plan", manifest.plan},
       {"quantization", quantization_to_json(manifest)},
       {"weights", weights_to_json(manifest.weights)},
       {"programs", programs_to_json(manifest.programs)},
       {"scales", scales_to_json(manifest.scales)},
       {"files", files_to_json(manifest.files)}});
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where, {.bytes = std::size_t{64} << 20, .depth = 16});
  const Reader root(json, where);
  if (const std::string format = root.text("format"); format != "clefkit-bundle") {
    Reader::fail(root.path("format"), Json(format), "\"clefkit-bundle\"");
  }
  if (const std::uint64_t version = root.integer("format_version");
      version != kBundleFormatVersion) {
    throw_error(ErrorCode::kCorruptData, root.path("format_version"),
                "the bundle has format version {}, this clefkit reads version {}{}", version,
                kBundleFormatVersion,
                version > kBundleFormatVersion ? "; a newer clefkit is needed" : "");
  }
  Manifest manifest;
  manifest.producer_version = root.object("producer").text("version");
  const Reader source = root.object("source");
  manifest.repository = source.optional_text("repository");
  manifest.revision = source.optional_text("revision");
  source.each("files", [&](const Json& item, const std::string& place) {
    manifest.source_files.push_back(read_file_record(item, place));
  });
  manifest.license = root.text("license");
  manifest.text_only = root.boolean_or("text_only", false);
  manifest.plan = root.optional_text("plan");
  const Reader quantization = root.object("quantization");
  if (const std::string kind = quantization.text("kind"); kind != "lut6") {
    Reader::fail(quantization.path("kind"), Json(kind), "lut6");
  }
  for (const auto& [key, value] : {std::pair{"bits", 6}, std::pair{"group_channels", 16}}) {
    if (quantization.integer(key) != static_cast<std::uint64_t>(value)) {
      Reader::fail(quantization.path(key), Json(quantization.integer(key)), std::to_string(value));
    }
  }
  manifest.palette = quantization.text("palette");
  constexpr std::array kPalettes{"original", "optimal", "grid8", "fast"};
  if (std::ranges::find(kPalettes, manifest.palette) == kPalettes.end()) {
    Reader::fail(quantization.path("palette"), Json(manifest.palette),
                 "original, optimal, grid8 or fast");
  }
  manifest.rounds = quantization.integer("rounds");
  manifest.min_weights = quantization.integer("min_weights");
  quantization.each("tensors", [&](const Json& item, const std::string& place) {
    const Reader reader(item, place);
    manifest.palettized.push_back({reader.text("name"),
                                   static_cast<std::size_t>(reader.integer("rows")),
                                   static_cast<std::size_t>(reader.integer("columns")),
                                   reader.number("relative_rmse"), reader.number("max_abs_error")});
  });
  quantization.each("kept", [&](const Json& item, const std::string& place) {
    const Reader reader(item, place);
    manifest.kept.push_back({reader.text("name"), reader.text("stored"), reader.text("reason")});
  });
  root.each("weights", [&](const Json& item, const std::string& place) {
    manifest.weights.push_back(read_weight(item, place));
  });
  if (json.find("programs") != nullptr) {
    root.each("programs", [&](const Json& item, const std::string& place) {
      manifest.programs.push_back(read_program(item, place));
    });
  }
  if (const Json* const scales = json.find("scales")) {
    manifest.scales = scales_from_json(*scales, root.path("scales"));
  }
  root.each("files", [&](const Json& item, const std::string& place) {
    manifest.files.push_back(read_file_record(item, place));
  });
  check_quantization(manifest, where);
  for (const ProgramRecord& program : manifest.programs) {
    for (const std::string& path : {program.mil, program.weights}) {
      if (lists_file(manifest, path)) continue;
      throw_error(ErrorCode::kCorruptData, where,
                  "programs: {} names {}, expected a file of `files`", program.name, path);
    }
  }
  return manifest;
}

bool lists_file(const Manifest& manifest, std::string_view path) {
  return std::ranges::find(manifest.files, path, &FileRecord::path) != manifest.files.end();
}

fs::path bundle_path(const fs::path& bundle, const std::string& path) {
  const std::string where = (bundle / kManifestFile).string();
  check_path(path, where);
  std::error_code error;
  const fs::path root = fs::canonical(bundle, error);
  if (error) {
    throw Error(ErrorCode::kNotFound, bundle.string(), "no such bundle directory");
  }
  const fs::path target = fs::canonical(root / path, error);
  if (error) {
    throw_error(ErrorCode::kNotFound, (bundle / path).string(),
                "the manifest names this file, but it is not there");
  }
  const auto [end, unused] = std::ranges::mismatch(root, target);
  if (end != root.end()) {
    throw_error(ErrorCode::kCorruptData, where, "the path {} leaves the bundle through a link",
                to_string(Json(path)));
  }
  return target;
}

}  // namespace clefkit
