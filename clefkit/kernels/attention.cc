#include "clefkit/kernels/attention.h"

namespace clefkit {

void causal_attention(const ComputeContext& context, const AttentionShape& shape,
                      MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, MatrixView<float> out) {
  const std::size_t past = keys.rows - q.rows;
  context.parallel_for(q.rows, [&](std::size_t i, std::size_t) {
    attention_reference(shape, q.rows_from(i, 1), keys, values,
                        static_cast<std::ptrdiff_t>(past + i), out.rows_from(i, 1));
  });
}

void full_attention(const ComputeContext& context, const AttentionShape& shape,
                    MatrixView<const float> q, MatrixView<const float> keys,
                    MatrixView<const float> values, MatrixView<float> out) {
  context.parallel_for(q.rows, [&](std::size_t i, std::size_t) {
    attention_reference(shape, q.rows_from(i, 1), keys, values, -1, out.rows_from(i, 1));
  });
}

void apply_rotary(const ComputeContext& context, MatrixView<float> x, std::size_t heads,
                  std::size_t head_dim, MatrixView<const float> cosines,
                  MatrixView<const float> sines) {
  const std::size_t half = cosines.columns;
  context.parallel_for(x.rows, [&](std::size_t row, std::size_t) {
    for (std::size_t head = 0; head < heads; ++head) {
      float* const first = x.row(row).data() + head * head_dim;
      float* const second = first + half;
      for (std::size_t i = 0; i < half; ++i) {
        const float cosine = cosines.row(row)[i];
        const float sine = sines.row(row)[i];
        const float a = first[i];
        const float b = second[i];
        first[i] = a * cosine - b * sine;
        second[i] = b * cosine + a * sine;
      }
    }
  });
}

}  // namespace clefkit
