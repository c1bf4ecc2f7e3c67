#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"

namespace clefkit {

// What became of one file that a bundle's manifest names.
struct FileCheck {
  std::string path;
  std::string problem;  // Empty when size and SHA-256 are the manifest's.
};

// Checks every file of a bundle, in parallel, and names files that the manifest does not.
// `progress` is given bytes done and in all. Throws Error as read_manifest, and kCancelled.
std::vector<FileCheck> check_bundle_files(
    const std::filesystem::path& bundle, const ComputeContext& context,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace clefkit
