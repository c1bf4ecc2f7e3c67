#pragma once

#include <filesystem>
#include <vector>

#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit {

// Opens `model.safetensors.index.json` with the shards it names or, where there is no index, the
// single `model.safetensors`. Proves that index and shards name the same tensors in the same
// places, that every name is a plain file of the directory, and that no tensor occurs twice.
// Shards come in the order of their names. Throws Error(kNotFound) for an absent file, else as
// SafetensorsFile does.
std::vector<SafetensorsFile> open_sharded_safetensors(const std::filesystem::path& directory);

}  // namespace clefkit
