#include "clefkit/backend/ane/program_sequence.h"

#include <atomic>

namespace clefkit::ane {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

ProgramSequence::ProgramSequence(const TextConfig& config, std::size_t capacity_tokens)
    : id_(next_id()), capacity_tokens_(capacity_tokens) {
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.layer_types[layer] == LayerType::kFullAttention) {
      full_.try_emplace(layer);
      continue;
    }
    LinearAttention& state = linear_[layer];
    state.conv_state.resize(config.conv_channels() * (config.linear_conv_kernel_dim - 1));
    state.recurrent_state.resize(config.linear_num_value_heads * config.linear_key_head_dim *
                                 config.linear_value_head_dim);
  }
}

ProgramSequence::ProgramSequence(const ProgramSequence& other)
    : SequenceState(other),
      id_(next_id()),
      tokens_(other.tokens_),
      capacity_tokens_(other.capacity_tokens_),
      linear_(other.linear_),
      full_(other.full_),
      late_angles_(other.late_angles_) {}

std::size_t ProgramSequence::size_bytes() const {
  std::size_t values = 0;
  for (const auto& [layer, state] : linear_) {
    values += state.conv_state.size() + state.recurrent_state.size();
  }
  for (const auto& [layer, cache] : full_) {
    values += cache.keys.size() + cache.values.size() + cache.late_inputs.size();
  }
  return values * sizeof(Half) +
         (late_angles_.cos.size() + late_angles_.sin.size()) * sizeof(float);
}

std::unique_ptr<SequenceState> ProgramSequence::clone(std::size_t capacity_tokens) const {
  auto copy = std::make_unique<ProgramSequence>(*this);
  copy->capacity_tokens_ = capacity_tokens;
  return copy;
}

}  // namespace clefkit::ane
