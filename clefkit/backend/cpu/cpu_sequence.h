#pragma once

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/model/config.h"

namespace clefkit::cpu {

// What a linear attention layer keeps: the last inputs of its convolution, and the matrix that the
// delta rule updates. Both start as zeros.
struct LinearAttentionState {
  std::vector<float> conv_state;  // [linear_conv_kernel_dim − 1, conv_channels], oldest first
  std::vector<float> recurrent_state;  // [value heads, key_head_dim, value_head_dim]
};

// Keys and values of every token so far. The rows are reserved at once but left untouched, so that
// the system provides memory only for those that were written.
class KvCache {
 public:
  KvCache(std::size_t capacity_tokens, std::size_t kv_dim);

  // The first `tokens` rows, [tokens, kv_dim].
  MatrixView<float> keys(std::size_t tokens) { return {keys_.get(), tokens, kv_dim_}; }
  MatrixView<float> values(std::size_t tokens) { return {values_.get(), tokens, kv_dim_}; }

  KvCache copy(std::size_t tokens, std::size_t capacity_tokens) const;

 private:
  std::size_t kv_dim_;
  std::unique_ptr<float[]> keys_, values_;
};

class CpuSequence final : public SequenceState {
 public:
  CpuSequence(const TextConfig& config, std::size_t capacity_tokens);

  std::size_t tokens() const override { return tokens_; }
  std::size_t size_bytes() const override;
  std::unique_ptr<SequenceState> clone(std::size_t capacity_tokens) const override;

  std::size_t capacity_tokens() const { return capacity_tokens_; }
  void append(std::size_t tokens) { tokens_ += tokens; }

  // The state of that layer, which is of this type.
  LinearAttentionState& linear_attention(std::size_t layer) {
    return std::get<LinearAttentionState>(layers_[layer]);
  }
  KvCache& kv_cache(std::size_t layer) { return std::get<KvCache>(layers_[layer]); }

 private:
  CpuSequence() = default;

  std::size_t tokens_ = 0;
  std::size_t capacity_tokens_ = 0;
  std::size_t kv_dim_ = 0;
  std::vector<std::variant<LinearAttentionState, KvCache>> layers_;
};

}  // namespace clefkit::cpu
