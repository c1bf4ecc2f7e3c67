#include "clefkit/bundle/open_bundle.h"

#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/bundle/bundle_files.h"
#include "clefkit/bundle/fast_precision.h"
#include "clefkit/mil/weight_blob.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/model/tensor_checklist.h"
#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRowsPerPalette = 16;

void check_sizes(const fs::path& directory, const Manifest& manifest) {
  for (const FileRecord& file : manifest.files) {
    const fs::path path = bundle_path(directory, file.path);
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(path, error);
    if (error || bytes != file.bytes) {
      throw_error(ErrorCode::kCorruptData, path.string(),
                  "{} bytes, expected {} as the manifest says", error ? 0 : bytes, file.bytes);
    }
  }
}

// A file that answering reads and `files` does not list would escape every checksum.
void check_all_listed(const fs::path& directory, const Manifest& manifest) {
  std::set<std::string> read = {
      kConfigFile,          kHeadConfigFile, kTokenizerFile, kTokenizerConfigFile, kEmbeddingsFile,
      kProcessorConfigFile, kHeadFile,       kVisionFile,    kPaletteScalesFile};
  for (const BlobWeight& weight : manifest.weights) read.insert(weight.blob);
  for (const std::string& path : read) {
    std::error_code unreadable;
    if (lists_file(manifest, path) || !fs::exists(directory / path, unreadable)) continue;
    throw_error(ErrorCode::kCorruptData, (directory / kManifestFile).string(),
                "`files` does not list {}, which the bundle holds, expected its size and SHA-256",
                path);
  }
}

// The blob files that weights lie in, each mapped and walked once.
class Blobs {
 public:
  Blobs(const fs::path& directory, Model& model) : directory_(directory), model_(model) {}

  const mil::BlobRecord& record(const std::string& blob, std::uint64_t offset,
                                mil::BlobDataType type, std::uint64_t element_count,
                                const std::string& where) {
    const mil::BlobRecord& found = open(blob).at(offset);
    if (found.type != type || found.element_count != element_count) {
      throw_error(
          ErrorCode::kCorruptData, where,
          "the blob record at {} of {} has type {} and {} elements, expected type {} and {}",
          offset, blob, static_cast<unsigned>(found.type), found.element_count,
          static_cast<unsigned>(type), element_count);
    }
    return found;
  }

 private:
  const mil::WeightBlobReader& open(const std::string& blob) {
    if (const auto known = readers_.find(blob); known != readers_.end()) return known->second;
    const fs::path path = bundle_path(directory_, blob);
    MappedFile file(path);
    const auto placed = readers_.try_emplace(blob, file.bytes(), path.string());
    model_.files.push_back(std::move(file));
    return placed.first->second;
  }

  const fs::path& directory_;
  Model& model_;
  std::map<std::string, mil::WeightBlobReader> readers_;
};

std::span<const Half> halves_of(Bytes bytes) {
  // Blob data starts on 64 bytes, and mappings on pages.
  return {reinterpret_cast<const Half*>(bytes.data()), bytes.size() / sizeof(Half)};
}

// Per palettized tensor its grid scales; empty without the file.
std::map<std::string, std::span<const float>> open_scales(const fs::path& directory,
                                                          const Manifest& manifest, Model& model) {
  std::map<std::string, std::span<const float>> scales;
  for (const FileRecord& record : manifest.files) {
    if (record.path != kPaletteScalesFile) continue;
    SafetensorsFile file(bundle_path(directory, record.path));
    for (const TensorView& tensor : file.tensors()) {
      if (tensor.dtype != DType::kF32) {
        throw_error(ErrorCode::kCorruptData, file.path().string() + ": " + tensor.name,
                    "element type {}, expected F32", to_string(tensor.dtype));
      }
      scales[tensor.name] = tensor.float_values();
    }
    model.files.push_back(std::move(file).release());
  }
  return scales;
}

void add_blob_weights(const fs::path& directory, const Manifest& manifest,
                      TensorChecklist& checklist, Model& model) {
  const std::string where = (directory / kManifestFile).string();
  Blobs blobs(directory, model);
  const auto scales = open_scales(directory, manifest, model);
  for (const BlobWeight& weight : manifest.weights) {
    const PlannedTensor& plan = checklist.take(weight.name, weight.shape, where);
    const std::uint64_t elements = plan.element_count();
    const std::string place = where + ": " + weight.name;
    if (weight.kind == BlobWeight::Kind::kFp16) {
      const mil::BlobRecord& record =
          blobs.record(weight.blob, weight.offset, mil::BlobDataType::kFloat16, elements, place);
      model.weights.emplace(weight.name,
                            TensorView{weight.name, DType::kF16, weight.shape, record.data});
      continue;
    }
    if (plan.tensor_class != TensorClass::kTextLinear || weight.shape[0] % kRowsPerPalette != 0) {
      throw_error(ErrorCode::kCorruptData, place,
                  "palettized, expected only linear layers whose rows come in sixteens");
    }
    const Lut6Matrix::Shape shape{weight.shape[0], weight.shape[1], kRowsPerPalette};
    const mil::BlobRecord& indices =
        blobs.record(weight.blob, weight.offset, mil::BlobDataType::kUInt6, elements, place);
    const mil::BlobRecord& palettes =
        blobs.record(weight.blob, weight.palette_offset, mil::BlobDataType::kFloat16,
                     shape.palette_count() * Lut6Matrix::kPaletteSize, place);
    const auto scale = scales.find(weight.name);
    try {
      model.weights.emplace(weight.name, Lut6Matrix(shape, indices.data, halves_of(palettes.data),
                                                    scale == scales.end() ? std::span<const float>()
                                                                          : scale->second));
    } catch (const Error& error) {
      throw Error(error.code(), place, error.message());
    }
  }
}

}  // namespace

bool is_bundle(const fs::path& directory) {
  std::error_code unreadable;
  return fs::exists(directory / kManifestFile, unreadable);
}

Manifest read_manifest(const fs::path& directory) {
  const fs::path path = directory / kManifestFile;
  return parse_manifest(read_file(path, std::uint64_t{64} << 20), path.string());
}

Model open_bundle(const fs::path& directory) {
  Manifest manifest = read_manifest(directory);
  check_sizes(directory, manifest);
  check_all_listed(directory, manifest);
  Model model{open_model_files(directory), {}, {}, {}, {}};
  if (manifest.text_only) model.config.vision = {};

  const std::vector<PlannedTensor> plan = plan_tensors(model.config);
  TensorChecklist checklist(plan, [](const PlannedTensor&) { return true; });
  add_blob_weights(directory, manifest, checklist, model);
  add_tensors(SafetensorsFile(bundle_path(directory, kEmbeddingsFile)), checklist, model);
  add_tensors(SafetensorsFile(bundle_path(directory, kHeadFile)), checklist, model);
  if (model.config.has_vision())
    add_tensors(SafetensorsFile(bundle_path(directory, kVisionFile)), checklist, model);
  checklist.check_complete(directory.string());
  tie_embeddings(model);
  model.programs = std::move(manifest.programs);
  model.blob_weights = std::move(manifest.weights);
  model.mlp_factors = mlp_factors(manifest.scales);
  if (!manifest.scales.mlp.empty() &&
      manifest.scales.mlp.back().layer >= model.config.text.num_hidden_layers) {
    throw_error(ErrorCode::kCorruptData, (directory / kManifestFile).string(),
                "scales.mlp: layer {}, expected below {}", manifest.scales.mlp.back().layer,
                model.config.text.num_hidden_layers);
  }
  const std::optional<FastPrecision> fast = read_fast_precision(directory);
  model.is_fast_accurate = fast && is_accurate_enough(*fast);
  return model;
}

}  // namespace clefkit
