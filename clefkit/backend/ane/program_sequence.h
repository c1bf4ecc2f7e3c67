#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/base/half.h"
#include "clefkit/model/config.h"

namespace clefkit::ane {

// What a sequence leaves behind in the ports of the text programs.
class ProgramSequence final : public SequenceState {
 public:
  ProgramSequence(const TextConfig& config, std::size_t capacity_tokens);
  ProgramSequence(const ProgramSequence& other);
  ProgramSequence& operator=(const ProgramSequence&) = delete;

  std::size_t tokens() const override { return tokens_; }
  std::size_t size_bytes() const override;
  std::unique_ptr<SequenceState> clone(std::size_t capacity_tokens) const override;

  // No other sequence of this process has it.
  std::uint64_t id() const { return id_; }
  std::size_t capacity_tokens() const { return capacity_tokens_; }
  void append(std::size_t tokens) { tokens_ += tokens; }

  // As their ports have them (emit_linear_attention), without padding.
  struct LinearAttention {
    std::vector<Half> conv_state, recurrent_state;
  };
  // Rows of kv_dim, one a token. The tokens that an attention program's cache has no place for are
  // computed anew with those that follow: from `late_inputs`, the layer's input rows.
  struct KvCache {
    std::vector<Half> keys, values;
    std::vector<Half> late_inputs;
  };
  // Of the same tokens, rows of rotary_dim / 2.
  struct LateAngles {
    std::vector<float> cos, sin;
  };
  LinearAttention& linear_attention(std::size_t layer) { return linear_.at(layer); }
  KvCache& kv_cache(std::size_t layer) { return full_.at(layer); }
  LateAngles& late_angles() { return late_angles_; }

 private:
  std::uint64_t id_;
  std::size_t tokens_ = 0;
  std::size_t capacity_tokens_ = 0;
  std::map<std::size_t, LinearAttention> linear_;
  std::map<std::size_t, KvCache> full_;
  LateAngles late_angles_;
};

}  // namespace clefkit::ane
