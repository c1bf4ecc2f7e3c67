#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "clefkit/model/config.h"

namespace clefkit {

// Texts of the small JSON files beside a checkpoint's weights. With the release's configuration
// they are the release's files byte for byte (model.md 1.1).

std::string generation_config_json(std::optional<std::uint64_t> eos_token_id);
std::string processor_config_json(const VisionConfig& vision);
std::string tokenizer_config_json();

// model.safetensors.index.json. `shard_of_tensor` maps tensor names to shard names.
std::string safetensors_index_json(const std::map<std::string, std::string>& shard_of_tensor,
                                   std::uint64_t total_parameters, std::uint64_t total_size_bytes);

}  // namespace clefkit
