#include "clefkit/convert/text_blob.h"

#include "clefkit/base/error.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/mil/weight_blob.h"
#include "clefkit/programs/fp16_tensor.h"

namespace clefkit {
namespace {

bool is_linear_weight(const std::string& name) {
  return name.ends_with("_proj.weight") || name.find(".in_proj_") != std::string::npos;
}

std::vector<std::uint8_t> bytes_of(std::span<const Half> halves) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(halves.data());
  return {first, first + halves.size_bytes()};
}

Json numbers(const std::vector<float>& values) {
  Json array = Json::array();
  for (const float value : values) array.push_back(static_cast<double>(value));
  return array;
}

}  // namespace

std::string reason_to_keep(const TensorView& tensor, std::uint64_t min_weights) {
  if (!is_linear_weight(tensor.name)) return "not a linear layer";
  if (tensor.name.ends_with(".in_proj_a.weight") || tensor.name.ends_with(".in_proj_b.weight")) {
    return "decay and gate inputs stay FP16";
  }
  if (tensor.element_count() < min_weights) {
    return fmt::format("{} weights, fewer than {}", tensor.element_count(), min_weights);
  }
  if (tensor.shape[0] % kRowsPerPalette != 0) {
    return fmt::format("{} rows, no multiple of 16", tensor.shape[0]);
  }
  if (tensor.shape[1] % 4 != 0) return fmt::format("{} columns, no multiple of 4", tensor.shape[1]);
  return {};
}

Json blob_contents_to_json(const BlobContents& contents) {
  // The manifest already knows how to write and check the first three.
  Manifest manifest;
  manifest.palette = "optimal";
  manifest.weights = contents.weights;
  manifest.palettized = contents.palettized;
  manifest.kept = contents.kept;
  Json scales = Json::object();
  for (const auto& tensor : contents.grid_scales) scales.set(tensor.name, numbers(tensor.scales));
  return Json::object(
      {{"manifest", manifest_to_json(manifest)}, {"grid_scales", std::move(scales)}});
}

BlobContents blob_contents_from_json(const Json& json) {
  const Json* const manifest_json = json.find("manifest");
  const Json* const scales = json.find("grid_scales");
  if (manifest_json == nullptr || scales == nullptr || !scales->is_object()) {
    throw Error(ErrorCode::kCorruptData, "journal", "a line without the contents of its file");
  }
  Manifest manifest = parse_manifest(to_string(*manifest_json), "journal");
  BlobContents contents{
      std::move(manifest.weights), std::move(manifest.palettized), std::move(manifest.kept), {}};
  for (const auto& [name, values] : scales->members()) {
    BlobContents::GridScales tensor{name, {}};
    for (const Json& value : values.is_array() ? values.items() : Json::Array{}) {
      tensor.scales.push_back(static_cast<float>(value.as_double().value_or(0)));
    }
    contents.grid_scales.push_back(std::move(tensor));
  }
  return contents;
}

BlobContents write_text_blob(const ComputeContext& context, const Model& checkpoint,
                             const PlannedProgram& program, const std::string& path,
                             const TextBlobOptions& options, const BundleWriter::Sink& sink,
                             const std::function<void(std::uint64_t)>& tensor_done) {
  std::uint32_t records = 0;
  for (const std::string& name : program.tensors) {
    records += reason_to_keep(checkpoint.tensor(name), options.min_weights).empty() ? 2 : 1;
  }
  mil::WeightBlobWriter writer([&](Bytes bytes) { sink({bytes.begin(), bytes.end()}); }, records);
  BlobContents contents;
  for (const std::string& name : program.tensors) {
    const TensorView& tensor = checkpoint.tensor(name);
    BlobWeight weight{name, path, BlobWeight::Kind::kFp16, tensor.shape, 0, 0};
    std::string reason = reason_to_keep(tensor, options.min_weights);
    if (reason.empty()) {
      const MatrixView<const BFloat16> matrix(tensor.bfloat16_values().data(), tensor.shape[0],
                                              tensor.shape[1]);
      PalettizedMatrix lut = palettize_matrix(context, matrix, options.palette, name);
      weight.kind = BlobWeight::Kind::kLut6;
      weight.offset =
          writer.add(mil::BlobDataType::kUInt6, lut.packed_indices, tensor.element_count());
      weight.palette_offset =
          writer.add(mil::BlobDataType::kFloat16, bytes_of(lut.palettes), lut.palettes.size());
      contents.palettized.push_back(
          {name, matrix.rows, matrix.columns, lut.relative_rmse, lut.max_abs_error});
      if (!lut.grid_scales.empty()) {
        contents.grid_scales.push_back({name, std::move(lut.grid_scales)});
      }
    } else {
      weight.offset =
          writer.add(mil::BlobDataType::kFloat16, to_fp16_bytes(tensor), tensor.element_count());
      contents.kept.push_back({name, "fp16", std::move(reason)});
    }
    contents.weights.push_back(std::move(weight));
    release_pages(tensor.bytes);
    tensor_done(tensor.bytes.size());
  }
  writer.finish();
  return contents;
}

}  // namespace clefkit
