#include "clefkit/backend/ane/program_sequence.h"

namespace clefkit::ane {
namespace {

using mil::dim;

}  // namespace

ProgramSequence::ProgramSequence(const TextConfig& config, std::size_t capacity_tokens)
    : capacity_tokens_(capacity_tokens) {
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.layer_types[layer] == LayerType::kFullAttention) {
      full_.try_emplace(layer);
      continue;
    }
    linear_[layer] = {
        mil::zeros({1, dim(config.conv_channels()), 1, dim(config.linear_conv_kernel_dim) - 1}),
        mil::zeros({1, dim(config.linear_num_value_heads), dim(config.linear_key_head_dim),
                    dim(config.linear_value_head_dim)})};
  }
}

std::size_t ProgramSequence::size_bytes() const {
  std::size_t values = 0;
  for (const auto& [layer, state] : linear_) {
    values += state.conv_state.values.size() + state.recurrent_state.values.size();
  }
  for (const auto& [layer, cache] : full_) values += cache.keys.size() + cache.values.size();
  return values * sizeof(float);
}

std::unique_ptr<SequenceState> ProgramSequence::clone(std::size_t capacity_tokens) const {
  auto copy = std::make_unique<ProgramSequence>(*this);
  copy->capacity_tokens_ = capacity_tokens;
  return copy;
}

}  // namespace clefkit::ane
