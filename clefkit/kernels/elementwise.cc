#include "clefkit/kernels/elementwise.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "clefkit/kernels/row_blocks.h"
#include "clefkit/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/elementwise.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file anew for each instruction set.
#include <hwy/highway.h>

#include "clefkit/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {

float dot_row(const float* a, const float* b, std::size_t count) {
  return sum_values(
      count, [](FloatVector x, FloatVector y) HWY_ATTR { return hn::Mul(x, y); }, a, b);
}

void rms_norm_row(const float* x, const float* multiplier, std::size_t count, float eps,
                  float* out) {
  const float mean_square = dot_row(x, x, count) / static_cast<float>(count);
  const float factor = 1.0f / std::sqrt(mean_square + eps);
  const auto scale = [factor](FloatVector value, FloatVector weight) HWY_ATTR {
    return hn::Mul(hn::Mul(value, hn::Set(FloatTag(), factor)), weight);
  };
  map_values(count, scale, out, x, multiplier);
}

void layer_norm_row(const float* x, const float* weight, const float* bias, std::size_t count,
                    float eps, float* out) {
  const float inverse_count = 1.0f / static_cast<float>(count);
  const float rough_mean = sum_values(
                               count, [](FloatVector value) HWY_ATTR { return value; }, x) *
                           inverse_count;
  // A second sum finds what rounding left in the mean, which matters when it is large beside the
  // deviation.
  const auto difference = [rough_mean](FloatVector value)
                              HWY_ATTR { return hn::Sub(value, hn::Set(FloatTag(), rough_mean)); };
  const float rest = sum_values(count, difference, x) * inverse_count;
  const auto centered = [difference, rest](FloatVector value) HWY_ATTR {
    return hn::Sub(difference(value), hn::Set(FloatTag(), rest));
  };
  const auto square = [centered](FloatVector value) HWY_ATTR {
    const auto deviation = centered(value);
    return hn::Mul(deviation, deviation);
  };
  const float variance = sum_values(count, square, x) * inverse_count;
  const float factor = 1.0f / std::sqrt(variance + eps);
  const auto normalize = [centered, factor](FloatVector value, FloatVector w,
                                            FloatVector b) HWY_ATTR {
    return hn::MulAdd(hn::Mul(centered(value), hn::Set(FloatTag(), factor)), w, b);
  };
  map_values(count, normalize, out, x, weight, bias);
}

void silu_multiply_row(float* gate, const float* up, std::size_t count) {
  const auto multiply = [](FloatVector g, FloatVector u)
                            HWY_ATTR { return hn::Mul(silu_of(FloatTag(), g), u); };
  map_values(count, multiply, gate, gate, up);
}

void sigmoid_multiply_row(float* x, const float* gate, std::size_t count) {
  const auto multiply = [](FloatVector value, FloatVector g)
                            HWY_ATTR { return hn::Mul(value, sigmoid_of(FloatTag(), g)); };
  map_values(count, multiply, x, x, gate);
}

void gelu_erf_row(float* x, std::size_t count) {
  map_values(
      count, [](FloatVector value) HWY_ATTR { return gelu_erf_of(FloatTag(), value); }, x, x);
}

void gelu_tanh_row(float* x, std::size_t count) {
  map_values(
      count, [](FloatVector value) HWY_ATTR { return gelu_tanh_of(FloatTag(), value); }, x, x);
}

void add_row(float* x, const float* y, std::size_t count) {
  map_values(
      count, [](FloatVector a, FloatVector b) HWY_ATTR { return hn::Add(a, b); }, x, x, y);
}

void softmax_row(float* values, std::size_t count) {
  // A NaN that the maximum misses still makes its own weight NaN, and so the sum and every value.
  const float maximum = *std::max_element(values, values + count);
  const auto weight = [maximum](FloatVector value) HWY_ATTR {
    const FloatTag d;
    return exp_saturated(d, hn::Sub(value, hn::Set(d, maximum)));
  };
  map_values(count, weight, values, values);
  const float sum = sum_values(
      count, [](FloatVector value) HWY_ATTR { return value; }, values);
  const float factor = 1.0f / sum;
  const auto scale = [factor](FloatVector value)
                         HWY_ATTR { return hn::Mul(value, hn::Set(FloatTag(), factor)); };
  map_values(count, scale, values, values);
}

bool row_has_non_finite(const float* values, std::size_t count) {
  // x − x is zero, or NaN for an infinity or a NaN, which no later sum loses.
  const float sum = sum_values(
      count, [](FloatVector value) HWY_ATTR { return hn::Sub(value, value); }, values);
  return sum != 0.0f;
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {

HWY_EXPORT(dot_row);
HWY_EXPORT(rms_norm_row);
HWY_EXPORT(layer_norm_row);
HWY_EXPORT(silu_multiply_row);
HWY_EXPORT(sigmoid_multiply_row);
HWY_EXPORT(gelu_erf_row);
HWY_EXPORT(gelu_tanh_row);
HWY_EXPORT(add_row);
HWY_EXPORT(softmax_row);
HWY_EXPORT(row_has_non_finite);

void rms_norm(const ComputeContext& context, MatrixView<const float> x,
              std::span<const float> multiplier, float eps, MatrixView<float> out) {
  const StageTimer timer(context.times, "elementwise");
  assert(multiplier.size() == x.columns && out.rows == x.rows && out.columns == x.columns);
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(rms_norm_row)
    (x.row(row).data(), multiplier.data(), x.columns, eps, out.row(row).data());
  });
}

void layer_norm(const ComputeContext& context, MatrixView<const float> x,
                std::span<const float> weight, std::span<const float> bias, float eps,
                MatrixView<float> out) {
  const StageTimer timer(context.times, "elementwise");
  assert(weight.size() == x.columns && bias.size() == x.columns);
  assert(out.rows == x.rows && out.columns == x.columns);
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(layer_norm_row)
    (x.row(row).data(), weight.data(), bias.data(), x.columns, eps, out.row(row).data());
  });
}

void silu_multiply(const ComputeContext& context, MatrixView<float> gate,
                   MatrixView<const float> up) {
  const StageTimer timer(context.times, "elementwise");
  assert(up.rows == gate.rows && up.columns == gate.columns);
  for_each_row(context, gate.rows, gate.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(silu_multiply_row)
    (gate.row(row).data(), up.row(row).data(), gate.columns);
  });
}

void sigmoid_multiply(const ComputeContext& context, MatrixView<float> x,
                      MatrixView<const float> gate) {
  const StageTimer timer(context.times, "elementwise");
  assert(gate.rows == x.rows && gate.columns == x.columns);
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(sigmoid_multiply_row)
    (x.row(row).data(), gate.row(row).data(), x.columns);
  });
}

void gelu_erf(const ComputeContext& context, MatrixView<float> x) {
  const StageTimer timer(context.times, "elementwise");
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(gelu_erf_row)(x.row(row).data(), x.columns);
  });
}

void gelu_tanh(const ComputeContext& context, MatrixView<float> x) {
  const StageTimer timer(context.times, "elementwise");
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(gelu_tanh_row)(x.row(row).data(), x.columns);
  });
}

void add(const ComputeContext& context, MatrixView<float> x, MatrixView<const float> y) {
  const StageTimer timer(context.times, "elementwise");
  assert(y.rows == x.rows && y.columns == x.columns);
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    HWY_DYNAMIC_DISPATCH(add_row)(x.row(row).data(), y.row(row).data(), x.columns);
  });
}

void softmax(std::span<float> values) {
  if (values.empty()) return;
  HWY_DYNAMIC_DISPATCH(softmax_row)(values.data(), values.size());
}

float dot(std::span<const float> a, std::span<const float> b) {
  assert(a.size() == b.size());
  return HWY_DYNAMIC_DISPATCH(dot_row)(a.data(), b.data(), a.size());
}

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

bool has_non_finite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(row_has_non_finite)(values.data(), values.size());
}

}  // namespace clefkit
#endif  // HWY_ONCE
