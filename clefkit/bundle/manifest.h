#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/model/blob_weight.h"
#include "clefkit/model/program_record.h"
#include "clefkit/model/text_scales.h"

namespace clefkit {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr std::uint64_t kBundleFormatVersion = 1;

// A file and what it must hold. `path` is relative, with forward slashes.
struct FileRecord {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
};

// A weight matrix palettized to 6 bits, and how far it is from the original.
struct PalettizedTensor {
  std::string name;
  std::size_t rows = 0;
  std::size_t columns = 0;
  double relative_rmse = 0;  // sqrt(Σ(w−ŵ)² / Σw²)
  double max_abs_error = 0;
};

// A tensor that was not palettized, and why.
struct KeptTensor {
  std::string name;
  std::string stored;  // "fp16" or "bf16"
  std::string reason;
};

struct Manifest {
  std::string producer_version;
  std::string repository;  // Empty when unknown.
  std::string revision;
  std::vector<FileRecord> source_files;
  std::string license = "Apache-2.0";
  bool text_only = false;
  std::string palette;  // "optimal", "original", "fast", "grid8"
  std::uint64_t rounds = 0;
  std::uint64_t min_weights = 0;
  std::string plan;  // "grouped", "split"
  std::vector<PalettizedTensor> palettized;
  std::vector<KeptTensor> kept;
  std::vector<BlobWeight> weights;
  std::vector<ProgramRecord> programs;  // None in bundles of before.
  TextScales scales;                    // The same.
  std::vector<FileRecord> files;        // Every file of the bundle but the manifest itself.
};

Json manifest_to_json(const Manifest& manifest);

// Its member `scales`. Reading throws Error(kCorruptData) with the key's path for anything but
// factors of 1 to 16, layers in order and finite maxima; how many layers there are, only the model
// knows.
Json scales_to_json(const TextScales& scales);
TextScales scales_from_json(const Json& json, const std::string& where);

// Checks the format and its version first, then structure, ranges and paths, and that every weight
// is in `quantization` and every file of a program is in `files`. Unknown keys are ignored. Throws
// Error(kCorruptData) with the key's path.
Manifest parse_manifest(std::string_view text, const std::string& where);

// Whether `files` has it, so that its size and checksum are known.
bool lists_file(const Manifest& manifest, std::string_view path);

// The file a manifest names inside a bundle. Throws Error(kCorruptData) when the path is absolute,
// contains "..", or leaves the bundle through a link; kNotFound when there is no such file.
std::filesystem::path bundle_path(const std::filesystem::path& bundle, const std::string& path);

}  // namespace clefkit
