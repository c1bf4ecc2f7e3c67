#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clefkit/model/config.h"
#include "clefkit/safetensors/safetensors_writer.h"

namespace clefkit {

struct WeightFile {
  std::string name;
  SafetensorsLayout layout;
};

// The safetensors files of a checkpoint in the release's layout, and their index.
struct CheckpointFiles {
  std::vector<WeightFile> weight_files;  // The backbone's shards, then joint_head.safetensors.
  std::string index_json;                // Empty with a single shard, which needs none.

  std::uint64_t total_bytes() const;
};

// As the release's writer cuts shards: in natural order of the names, a new one before
// `shard_bytes` of tensor data would be exceeded. All tensors are BF16.
CheckpointFiles plan_checkpoint_files(const ModelConfig& config,
                                      std::uint64_t shard_bytes = 5'000'000'000);

}  // namespace clefkit
