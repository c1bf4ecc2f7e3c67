// Functions on Highway vectors of floats; included once for each instruction set.
#if defined(CLEFKIT_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEFKIT_KERNELS_VECTOR_MATH_INL_H_
#undef CLEFKIT_KERNELS_VECTOR_MATH_INL_H_
#else
#define CLEFKIT_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that buffers padded to 32 floats hold whole pairs of vectors everywhere.
using FloatTag = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<FloatTag>;

// Outside [kExpLow, kExpHigh] the exponent field of the result would overflow.
constexpr float kExpLow = -87.33f;
constexpr float kExpHigh = 88.37f;

// e^x for x in [kExpLow, kExpHigh], within 2e-7 relative; a NaN gives a NaN.
HWY_INLINE FloatVector exp_in_range(FloatTag d, FloatVector x) {
  const hn::RebindToUnsigned<FloatTag> bits;
  // Adding 1.5·2^23 rounds to an integer n held in the low mantissa bits; 127 more makes those
  // bits the exponent field of 2^n.
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  const auto n = hn::Sub(shifted, magic);
  // ln 2 in two parts: n times the first is exact.
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  // (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2, interpolated at Chebyshev nodes.
  auto tail = hn::MulAdd(r, hn::Set(d, 0.001392618359f), hn::Set(d, 0.008363179053f));
  tail = hn::MulAdd(r, tail, hn::Set(d, 0.04166655462f));
  tail = hn::MulAdd(r, tail, hn::Set(d, 0.1666657699f));
  tail = hn::MulAdd(r, tail, hn::Set(d, 0.5f));
  const auto one_plus = hn::Add(r, hn::Set(d, 1.0f));
  return hn::Mul(hn::MulAdd(hn::Mul(r, r), tail, one_plus), power);
}

// e^x for x ≤ kExpHigh: zero below kExpLow. Comparisons instead of Max, which may drop a NaN.
HWY_INLINE FloatVector exp_or_zero(FloatTag d, FloatVector x) {
  const auto low = hn::Set(d, kExpLow);
  const auto too_low = hn::Lt(x, low);
  return hn::IfThenZeroElse(too_low, exp_in_range(d, hn::IfThenElse(too_low, low, x)));
}

// e^x with large x taken as kExpHigh, so that the result stays finite.
HWY_INLINE FloatVector exp_saturated(FloatTag d, FloatVector x) {
  const auto high = hn::Set(d, kExpHigh);
  return exp_or_zero(d, hn::IfThenElse(hn::Gt(x, high), high, x));
}

HWY_INLINE FloatVector sigmoid_of(FloatTag d, FloatVector x) {
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_saturated(d, hn::Neg(x))));
}

HWY_INLINE FloatVector silu_of(FloatTag d, FloatVector x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_saturated(d, hn::Neg(x))));
}

// x/2 · (1 + tanh u) is x · sigmoid(2u), u = sqrt(2/π) (x + 0.044715 x³).
HWY_INLINE FloatVector gelu_tanh_of(FloatTag d, FloatVector x) {
  const auto cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.044715f), hn::Set(d, 1.0f));
  const auto minus_two_u = hn::Mul(hn::Mul(x, cubic), hn::Set(d, -2.0f * 0.79788456f));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_saturated(d, minus_two_u)));
}

// x/2 · (1 + erf(x/√2)), with erfc(z) = t·P(t)·e^{−z²}, t = 1/(1 + 0.33 z), for z ≥ 0: within
// 2e-7 of erfc, and relative to it within 1e-6 for z < 5, so that small results keep their digits.
HWY_INLINE FloatVector gelu_erf_of(FloatTag d, FloatVector x) {
  const auto one = hn::Set(d, 1.0f);
  const auto z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678f));
  const auto t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.33f), one));
  auto p = hn::MulAdd(t, hn::Set(d, -0.1372867927f), hn::Set(d, 0.4685452961f));
  p = hn::MulAdd(t, p, hn::Set(d, -0.3659050959f));
  p = hn::MulAdd(t, p, hn::Set(d, 0.4225482252f));
  p = hn::MulAdd(t, p, hn::Set(d, 0.03950388074f));
  p = hn::MulAdd(t, p, hn::Set(d, 0.2036614548f));
  p = hn::MulAdd(t, p, hn::Set(d, 0.1825470762f));
  p = hn::MulAdd(t, p, hn::Set(d, 0.1863858516f));
  const auto gauss = exp_or_zero(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const auto half_erfc = hn::Mul(hn::Mul(hn::Set(d, 0.5f), hn::Mul(t, p)), gauss);
  const auto negative = hn::Lt(x, hn::Zero(d));
  return hn::Mul(x, hn::IfThenElse(negative, half_erfc, hn::Sub(one, half_erfc)));
}

HWY_INLINE float sum_of_lanes(FloatTag d, FloatVector v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// The first `count` (fewer than a vector's) floats at `from`, zeros above: nothing past the end is
// read, as masked loads may.
HWY_INLINE FloatVector load_first(FloatTag d, const float* from, std::size_t count) {
  HWY_ALIGN float lanes[16] = {};
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(d, lanes);
}

HWY_INLINE void store_first(FloatTag d, FloatVector v, float* to, std::size_t count) {
  HWY_ALIGN float lanes[16];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, count * sizeof(float));
}

// to[i] = function(from[i]...) for i in [0, count), vector by vector. `to` may be one of `from`.
template <class Function, class... From>
HWY_INLINE void map_values(std::size_t count, const Function& function, float* to,
                           const From*... from) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(function(hn::LoadU(d, from + i)...), d, to + i);
  }
  if (i < count) {
    store_first(d, function(load_first(d, from + i, count - i)...), to + i, count - i);
  }
}

// Σ function(from[i]...), in four running vectors: short sums keep the rounding small.
template <class Function, class... From>
HWY_INLINE float sum_values(std::size_t count, const Function& function, const From*... from) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    sum0 = hn::Add(sum0, function(hn::LoadU(d, from + i)...));
    sum1 = hn::Add(sum1, function(hn::LoadU(d, from + i + lanes)...));
    sum2 = hn::Add(sum2, function(hn::LoadU(d, from + i + 2 * lanes)...));
    sum3 = hn::Add(sum3, function(hn::LoadU(d, from + i + 3 * lanes)...));
  }
  for (; i + lanes <= count; i += lanes) {
    sum0 = hn::Add(sum0, function(hn::LoadU(d, from + i)...));
  }
  if (i < count) {
    const auto last = function(load_first(d, from + i, count - i)...);
    sum1 = hn::Add(sum1, hn::IfThenElseZero(hn::FirstN(d, count - i), last));
  }
  return sum_of_lanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#endif  // CLEFKIT_KERNELS_VECTOR_MATH_INL_H_
