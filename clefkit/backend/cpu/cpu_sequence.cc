#include "clefkit/backend/cpu/cpu_sequence.h"

#include <algorithm>
#include <cassert>

namespace clefkit::cpu {

KvCache::KvCache(std::size_t capacity_tokens, std::size_t kv_dim)
    : kv_dim_(kv_dim),
      keys_(std::make_unique_for_overwrite<float[]>(capacity_tokens * kv_dim)),
      values_(std::make_unique_for_overwrite<float[]>(capacity_tokens * kv_dim)) {}

KvCache KvCache::copy(std::size_t tokens, std::size_t capacity_tokens) const {
  KvCache cache(capacity_tokens, kv_dim_);
  std::copy_n(keys_.get(), tokens * kv_dim_, cache.keys_.get());
  std::copy_n(values_.get(), tokens * kv_dim_, cache.values_.get());
  return cache;
}

CpuSequence::CpuSequence(const TextConfig& config, std::size_t capacity_tokens)
    : capacity_tokens_(capacity_tokens), kv_dim_(config.kv_dim()) {
  for (const LayerType type : config.layer_types) {
    if (type == LayerType::kFullAttention) {
      layers_.emplace_back(KvCache(capacity_tokens, config.kv_dim()));
    } else {
      layers_.emplace_back(LinearAttentionState{
          std::vector<float>((config.linear_conv_kernel_dim - 1) * config.conv_channels()),
          std::vector<float>(config.linear_num_value_heads * config.linear_key_head_dim *
                             config.linear_value_head_dim)});
    }
  }
}

std::size_t CpuSequence::size_bytes() const {
  std::size_t floats = 0;
  for (const auto& layer : layers_) {
    if (const auto* state = std::get_if<LinearAttentionState>(&layer)) {
      floats += state->conv_state.size() + state->recurrent_state.size();
    } else {
      floats += 2 * tokens_ * kv_dim_;
    }
  }
  return floats * sizeof(float);
}

std::unique_ptr<SequenceState> CpuSequence::clone(std::size_t capacity_tokens) const {
  assert(capacity_tokens >= tokens_);
  std::unique_ptr<CpuSequence> sequence(new CpuSequence);
  sequence->tokens_ = tokens_;
  sequence->capacity_tokens_ = capacity_tokens;
  sequence->kv_dim_ = kv_dim_;
  for (const auto& layer : layers_) {
    if (const auto* state = std::get_if<LinearAttentionState>(&layer)) {
      sequence->layers_.emplace_back(*state);
    } else {
      sequence->layers_.emplace_back(std::get<KvCache>(layer).copy(tokens_, capacity_tokens));
    }
  }
  return sequence;
}

}  // namespace clefkit::cpu
