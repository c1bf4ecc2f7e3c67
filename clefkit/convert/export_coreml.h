#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/mil/ml_package.h"

namespace clefkit {

struct ExportedPackage {
  std::string program;  // "run-00-02", as the manifest calls it.
  std::string file;     // "run-00-02.mlpackage"
  std::uint64_t model_bytes = 0, weight_bytes = 0;
  mil::PackagedWeights weights = mil::PackagedWeights::kNone;
};

struct ExportProgress {
  std::size_t packages_done = 0, packages_total = 0;
  std::string program;  // The one that was written last.
};

// Writes every program of a bundle as `out/<program>.mlpackage`: those of the text layers, parsed
// from their MIL text, and those of the vision blocks, made here with weights of their own. Each is
// checked first. `out` appears whole or not at all. Text programs share their weight file with the
// bundle, or, where that is on another file system, with each other.
//
// Throws Error: kInvalidArgument (`out` exists, or lies in the bundle), kNotFound (no bundle, one
// without programs, a file that is missing), kCorruptData (manifest, text, weight file, a program
// that the checker refuses), kUnavailable (disk), kCancelled; and as open_bundle, for a bundle with
// vision.
std::vector<ExportedPackage> export_coreml(
    const std::filesystem::path& bundle, const std::filesystem::path& out,
    const CancelToken& cancel, const std::function<void(const ExportProgress&)>& progress = {});

}  // namespace clefkit
