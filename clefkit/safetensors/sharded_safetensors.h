#pragma once

#include <filesystem>
#include <vector>

#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit {

// Opens `model.safetensors` or, where that is absent, the shards that
// `model.safetensors.index.json` names: the order in which transformers looks. Proves that index
// and shards name the same tensors in the same places and that every shard is a plain name, which
// cannot leave the directory. Shards come in the order of their names. Throws Error(kNotFound) for
// an absent file, else as SafetensorsFile does.
std::vector<SafetensorsFile> open_sharded_safetensors(const std::filesystem::path& directory);

}  // namespace clefkit
