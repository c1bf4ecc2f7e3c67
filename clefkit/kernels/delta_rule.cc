#include "clefkit/kernels/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "clefkit/kernels/elementwise.h"

namespace clefkit {

void delta_rule(const ComputeContext& context, const DeltaRuleShape& shape,
                const DeltaRuleInput& input, std::span<float> state, MatrixView<float> out) {
  const std::size_t key_dim = shape.key_head_dim;
  const std::size_t value_dim = shape.value_head_dim;
  const std::size_t group = shape.value_heads / shape.key_heads;
  context.parallel_for(shape.value_heads, [&](std::size_t head, std::size_t) {
    const DeltaRuleShape one{1, 1, key_dim, value_dim};
    delta_rule_reference(one,
                         {.q = input.q.columns_from(head / group * key_dim, key_dim),
                          .k = input.k.columns_from(head / group * key_dim, key_dim),
                          .v = input.v.columns_from(head * value_dim, value_dim),
                          .beta = input.beta.columns_from(head, 1),
                          .g = input.g.columns_from(head, 1)},
                         state.subspan(head * one.state_size(), one.state_size()),
                         out.columns_from(head * value_dim, value_dim));
  });
}

void causal_conv_silu(const ComputeContext& context, MatrixView<const float> x,
                      MatrixView<const float> weight, std::span<float> conv_state,
                      MatrixView<float> out) {
  const std::size_t channels = x.columns;
  const std::size_t past_rows = weight.columns - 1;
  const auto input_row = [&](std::size_t index) {
    return index < past_rows ? conv_state.data() + index * channels
                             : x.data + (index - past_rows) * x.stride;
  };
  context.parallel_for(x.rows, [&](std::size_t t, std::size_t) {
    for (std::size_t c = 0; c < channels; ++c) {
      float sum = 0.0f;
      for (std::size_t j = 0; j <= past_rows; ++j) sum += weight.row(c)[j] * input_row(t + j)[c];
      out.row(t)[c] = sum * sigmoid(sum);
    }
  });
  // Row j of the new state is never older than row j of the old one, so front to back is safe.
  for (std::size_t j = 0; j < past_rows; ++j) {
    std::copy_n(input_row(x.rows + j), channels, conv_state.data() + j * channels);
  }
}

void l2_normalize_heads(const ComputeContext& context, MatrixView<float> x, std::size_t head_dim,
                        float eps, float scale) {
  context.parallel_for(x.rows, [&](std::size_t row, std::size_t) {
    for (std::size_t first = 0; first < x.columns; first += head_dim) {
      const auto head = x.row(row).subspan(first, head_dim);
      const float factor = scale / std::sqrt(dot(head, head) + eps);
      for (float& value : head) value *= factor;
    }
  });
}

}  // namespace clefkit
