#include "clefkit/synth/checkpoint_files.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "clefkit/model/checkpoint.h"
#include "clefkit/model/tensor_plan.h"
#include "clefkit/synth/release_files.h"

namespace clefkit {
namespace {

const SafetensorsMetadata kMetadata{{"format", "pt"}};

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

}  // namespace

std::uint64_t CheckpointFiles::total_bytes() const {
  std::uint64_t total = 0;
  for (const WeightFile& file : weight_files) total += file.layout.file_bytes();
  return total;
}

CheckpointFiles plan_checkpoint_files(const ModelConfig& config, std::uint64_t shard_bytes) {
  std::vector<std::vector<TensorInfo>> shards(1);
  std::vector<TensorInfo> head;
  std::uint64_t bytes_in_shard = 0;
  std::uint64_t total_parameters = 0;
  for (PlannedTensor& tensor : plan_tensors(config)) {
    TensorInfo info{std::move(tensor.name), DType::kBF16, std::move(tensor.shape)};
    if (tensor.file == TensorFile::kJointHead) {
      head.push_back(std::move(info));
      continue;
    }
    const std::uint64_t bytes = info.byte_count();
    if (bytes_in_shard + bytes > shard_bytes && !shards.back().empty()) {
      shards.emplace_back();
      bytes_in_shard = 0;
    }
    bytes_in_shard += bytes;
    total_parameters += bytes / size_bytes(DType::kBF16);
    shards.back().push_back(std::move(info));
  }

  CheckpointFiles files;
  std::map<std::string, std::string> shard_of_tensor;
  for (std::size_t index = 0; index < shards.size(); ++index) {
    const std::string name = shard_name(index, shards.size());
    for (const TensorInfo& tensor : shards[index]) shard_of_tensor.emplace(tensor.name, name);
    files.weight_files.push_back({name, plan_safetensors(std::move(shards[index]), kMetadata)});
  }
  if (shards.size() > 1) {
    files.index_json = safetensors_index_json(shard_of_tensor, total_parameters,
                                              total_parameters * size_bytes(DType::kBF16));
  }
  files.weight_files.push_back({kHeadWeightsFile, plan_safetensors(std::move(head), kMetadata)});
  return files;
}

}  // namespace clefkit
