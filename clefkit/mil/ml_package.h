#pragma once

#include <filesystem>

#include "clefkit/mil/ml_model.h"
#include "clefkit/mil/program.h"

// Apple's ML Package: a directory that Xcode, `coremlc` and Core ML take as a model.
//
//   Manifest.json                                   what lies where, by identifiers
//   Data/com.apple.CoreML/model.mlmodel             ml_model.h
//   Data/com.apple.CoreML/weights/weight.bin        weight_blob.h; not without weights
namespace clefkit::mil {

enum class PackagedWeights { kNone, kLinked, kCopied };

// Writes a program as the package `package`, which appears whole or not at all. Its weight file is
// a hard link to `weights` where the file system allows one, else a copy: programs that share
// weights take their space once, and who changes the one file changes the other. The same program
// gives the same Manifest.json and model.mlmodel.
//
// Throws Error: kInvalidArgument (`package` exists, or `weights` is no file), kNotFound (no
// `weights`, but the program has some), kUnavailable (disk), and what to_ml_model throws.
PackagedWeights write_ml_package(const std::filesystem::path& package, const Program& program,
                                 const std::filesystem::path& weights, const MlModelInfo& info);

// Where a package keeps its program and its weights.
std::filesystem::path packaged_model(const std::filesystem::path& package);
std::filesystem::path packaged_weights(const std::filesystem::path& package);

}  // namespace clefkit::mil
