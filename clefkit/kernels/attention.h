#pragma once

#include <cstddef>
#include <span>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit {

// Softmax attention in blocks with a running maximum: the scores of a whole sequence never exist
// at once. Query head h reads key/value head h / (query_heads / kv_heads).
struct AttentionShape {
  std::size_t query_heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  float scale = 1.0f;  // Scores are q·k · scale.
};

// Causal self-attention of the last `q.rows` tokens of a sequence over all of it (model.md 2.3).
//   q, out:  [tokens, query_heads · head_dim] (head-major within a row; strides allowed)
//   keys, values: [past + tokens, kv_heads · head_dim], the cache with the new rows in place
// Token i of q sees cache rows 0 … past + i. A row's result does not depend on how the sequence
// was cut into calls beyond float32 rounding.
void causal_attention(const ComputeContext& context, const AttentionShape& shape,
                      MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, MatrixView<float> out);

// Unmasked attention of `q` rows over `keys` rows (the decision head, a vision segment).
void full_attention(const ComputeContext& context, const AttentionShape& shape,
                    MatrixView<const float> q, MatrixView<const float> keys,
                    MatrixView<const float> values, MatrixView<float> out);

// Plain loops in double, both kinds: `causal_offset` is the number of past tokens, or negative for
// no mask.
void attention_reference(const AttentionShape& shape, MatrixView<const float> q,
                         MatrixView<const float> keys, MatrixView<const float> values,
                         std::ptrdiff_t causal_offset, MatrixView<float> out);

// Split-half rotary embedding in place on dims [0, 2·half) of each head (model.md 2.3):
//   x[i]' = x[i]·cos[i] − x[i+half]·sin[i];  x[i+half]' = x[i+half]·cos[i] + x[i]·sin[i]
// x: [tokens, heads · head_dim]; cosines, sines: [tokens, half].
void apply_rotary(const ComputeContext& context, MatrixView<float> x, std::size_t heads,
                  std::size_t head_dim, MatrixView<const float> cosines,
                  MatrixView<const float> sines);

}  // namespace clefkit
