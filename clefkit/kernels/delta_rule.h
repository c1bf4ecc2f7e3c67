#pragma once

#include <cstddef>
#include <span>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit {

// The gated delta rule of linear attention (model.md 2.2). Value head h uses key head
// h / (value_heads / key_heads).
struct DeltaRuleShape {
  std::size_t key_heads = 0;
  std::size_t value_heads = 0;
  std::size_t key_head_dim = 0;
  std::size_t value_head_dim = 0;

  std::size_t state_size() const { return value_heads * key_head_dim * value_head_dim; }
};

struct DeltaRuleInput {
  MatrixView<const float> q;     // [tokens, key_heads · key_head_dim], normalised and scaled
  MatrixView<const float> k;     // the same shape, normalised
  MatrixView<const float> v;     // [tokens, value_heads · value_head_dim]
  MatrixView<const float> beta;  // [tokens, value_heads]
  MatrixView<const float> g;     // [tokens, value_heads], log decay, at most 0
};

// Chunked form, sub-chunks of 64 tokens from the first row of each call. `state`
// [value_heads, key_head_dim, value_head_dim] is read and left as after the last token;
// out: [tokens, value_heads · value_head_dim].
void delta_rule(const ComputeContext& context, const DeltaRuleShape& shape,
                const DeltaRuleInput& input, std::span<float> state, MatrixView<float> out);

// One token after another, in double: the definition.
void delta_rule_reference(const DeltaRuleShape& shape, const DeltaRuleInput& input,
                          std::span<float> state, MatrixView<float> out);

// Causal depthwise convolution and SiLU over a chunk (model.md 2.2, step 2):
//   out[t, c] = silu(Σ_j weight[c, j] · x[t − (kernel − 1) + j, c])
// rows before the chunk come from conv_state [kernel − 1, channels], oldest first, which is left
// holding the last kernel − 1 rows. x, out: [tokens, channels], not overlapping;
// weight: [channels, kernel].
void causal_conv_silu(const ComputeContext& context, MatrixView<const float> x,
                      MatrixView<const float> weight, std::span<float> conv_state,
                      MatrixView<float> out);

// Per head of `head_dim` values: x = x · rsqrt(Σ x² + eps) · scale, in place (eps inside the root,
// added to the sum).
void l2_normalize_heads(const ComputeContext& context, MatrixView<float> x, std::size_t head_dim,
                        float eps, float scale);

}  // namespace clefkit
