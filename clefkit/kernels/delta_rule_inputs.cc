// What makes the delta rule's q, k and v: the short convolution and the norm of each head.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "clefkit/kernels/delta_rule.h"
#include "clefkit/kernels/row_blocks.h"
#include "clefkit/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/delta_rule_inputs.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file anew for each instruction set.
#include <hwy/highway.h>

#include "clefkit/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {

// out[c] = silu(Σ_j taps[j, c] · rows[j][c]); taps: [rows, channels].
void conv_silu_row(std::span<const float* const> rows, const float* taps, std::size_t channels,
                   float* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t c = 0; c < channels; c += lanes) {
    const std::size_t count = std::min(lanes, channels - c);
    const auto load = [d, lanes, count](const float* from) HWY_ATTR {
      return count == lanes ? hn::LoadU(d, from) : load_first(d, from, count);
    };
    auto sum = hn::Zero(d);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      sum = hn::MulAdd(load(taps + j * channels + c), load(rows[j] + c), sum);
    }
    const auto result = silu_of(d, sum);
    if (count == lanes) {
      hn::StoreU(result, d, out + c);
    } else {
      store_first(d, result, out + c, count);
    }
  }
}

void l2_normalize(float* head, std::size_t count, float eps, float scale) {
  const auto square = [](FloatVector v) HWY_ATTR { return hn::Mul(v, v); };
  const float sum = sum_values(count, square, head);
  const float factor = scale / std::sqrt(sum + eps);
  map_values(
      count, [factor](FloatVector v) HWY_ATTR { return hn::Mul(v, hn::Set(FloatTag(), factor)); },
      head, head);
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {

HWY_EXPORT(conv_silu_row);
HWY_EXPORT(l2_normalize);

void causal_conv_silu(const ComputeContext& context, MatrixView<const float> x,
                      MatrixView<const float> weight, std::span<float> conv_state,
                      MatrixView<float> out) {
  const StageTimer timer(context.times, "delta rule");
  const std::size_t channels = x.columns;
  const std::size_t kernel = weight.columns;
  assert(weight.rows == channels && kernel > 0 && conv_state.size() == (kernel - 1) * channels);
  assert(out.rows == x.rows && out.columns == channels);
  std::vector<float> taps(kernel * channels);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t j = 0; j < kernel; ++j) taps[j * channels + c] = weight.row(c)[j];
  }
  // Rows of the state and of x as one sequence.
  std::vector<const float*> rows(kernel - 1 + x.rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = i < kernel - 1 ? conv_state.data() + i * channels : x.row(i - (kernel - 1)).data();
  }
  for_each_row(context, x.rows, channels, [&](std::size_t t) {
    HWY_DYNAMIC_DISPATCH(conv_silu_row)
    (std::span(rows).subspan(t, kernel), taps.data(), channels, out.row(t).data());
  });
  // A row moves only towards the front, so the state can be rewritten front to back.
  for (std::size_t j = 0; x.rows > 0 && j + 1 < kernel; ++j) {
    std::copy_n(rows[x.rows + j], channels, conv_state.data() + j * channels);
  }
}

void l2_normalize_heads(const ComputeContext& context, MatrixView<float> x, std::size_t head_dim,
                        float eps, float scale) {
  const StageTimer timer(context.times, "delta rule");
  assert(x.columns % head_dim == 0);
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    for (std::size_t first = 0; first < x.columns; first += head_dim) {
      HWY_DYNAMIC_DISPATCH(l2_normalize)(x.row(row).data() + first, head_dim, eps, scale);
    }
  });
}

}  // namespace clefkit
#endif  // HWY_ONCE
