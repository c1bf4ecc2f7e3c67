#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "clefkit/kernels/lut6_activations.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/lut6_quantize.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file anew for each instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Partial sums are the same eight for every width of vectors, and so are the bits that come out.
constexpr std::size_t kPartialSums = 8;
using FloatTag = hn::CappedTag<float, kPartialSums>;
using FloatVector = hn::Vec<FloatTag>;

struct Magnitudes {
  float largest;
  float sum;  // NaN or infinite if an element is
};

template <std::size_t kCount>
Magnitudes magnitudes(const float* x) {
  const FloatTag d;
  std::array<float, kPartialSums> largest, sum;
  for (std::size_t lane = 0; lane < kPartialSums; lane += hn::Lanes(d)) {
    FloatVector lane_largest = hn::Zero(d), lane_sum = hn::Zero(d);
    for (std::size_t i = lane; i < kCount; i += kPartialSums) {
      const FloatVector magnitude = hn::Abs(hn::LoadU(d, &x[i]));
      lane_largest = hn::Max(lane_largest, magnitude);
      lane_sum = hn::Add(lane_sum, magnitude);
    }
    hn::StoreU(lane_largest, d, &largest[lane]);
    hn::StoreU(lane_sum, d, &sum[lane]);
  }
  for (std::size_t half = kPartialSums / 2; half != 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      largest[lane] = std::max(largest[lane], largest[lane + half]);
      sum[lane] += sum[lane + half];
    }
  }
  return {largest[0], sum[0]};
}

// Of columns 8i + {0, 1, 4, 5} and 8i + {2, 3, 6, 7}: the largest sum of positive values, or of
// negative ones.
template <std::size_t kCount>
float largest_sum_of_four(const float* x) {
  const hn::CappedTag<float, 4> d;
  const auto zero = hn::Zero(d);
  std::array<float, kCount> twos;  // positive in one half, negative in the other
  for (std::size_t i = 0; i < kCount; i += 8) {
    for (std::size_t k = 0; k < 4; k += hn::Lanes(d)) {
      const auto a = hn::LoadU(d, &x[i + k]), b = hn::LoadU(d, &x[i + k + 4]);
      const auto positive = hn::Add(hn::Max(a, zero), hn::Max(b, zero));
      const auto negative = hn::Add(hn::Min(a, zero), hn::Min(b, zero));
      hn::StoreU(positive, d, &twos[i / 2 + k]);
      hn::StoreU(hn::Neg(negative), d, &twos[kCount / 2 + i / 2 + k]);
    }
  }
  auto largest = zero;
  for (std::size_t i = 0; i < kCount; i += 2 * hn::Lanes(d)) {
    auto even = zero, odd = zero;
    hn::LoadInterleaved2(d, &twos[i], even, odd);
    largest = hn::Max(largest, hn::Add(even, odd));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// To the nearest integer, ties to even.
template <std::size_t kCount, typename Value>
void round_scaled(const float* x, float factor, Value* out) {
  const FloatTag d;
  const hn::Rebind<Value, FloatTag> narrow;
  const FloatVector factors = hn::Set(d, factor);
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, &x[i]), factors));
    hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, out + i);
  }
}

// Below this largest magnitude a block counts as zero: its scale's inverse must stay finite.
constexpr float kTiny = 0x1p-100f;

template <typename Value>
float quantize(const float* x, std::size_t count, Value* out) {
  constexpr std::size_t kBlock = kLut6BlockColumns<Value>;
  constexpr bool kIsInt8 = sizeof(Value) == 1;
  constexpr float kLargest = kIsInt8 ? 127.0f : 32767.0f;
  // int8: 128, less half for each of four roundings, and what float arithmetic may add: an integer
  // of at most 128.99 is at most 128. int16: what Σ |x| / scale may be, less half a rounding for
  // each value, twice; 0.9999 covers the float arithmetic.
  constexpr float kLargestSum = kIsInt8 ? 126.99f : 0.9999f * 0x1p31f / kLargest - kBlock;
  std::array<float, kBlock> padded;
  if (count < kBlock) {
    std::copy_n(x, count, padded.begin());
    std::fill(padded.begin() + count, padded.end(), 0.0f);
    x = padded.data();
  }
  const Magnitudes found = magnitudes<kBlock>(x);
  if (!std::isfinite(found.sum) || found.largest < kTiny) {
    std::fill_n(out, kBlock, Value{0});
    return std::isfinite(found.sum) ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  float sum = found.sum;
  if constexpr (kIsInt8) sum = largest_sum_of_four<kBlock>(x);
  const float factor = std::min(kLargest / found.largest, kLargestSum / sum);
  round_scaled<kBlock>(x, factor, out);
  return 1.0f / factor;
}

float quantize_int16(const float* x, std::size_t count, std::int16_t* out) {
  return quantize(x, count, out);
}
float quantize_int8(const float* x, std::size_t count, std::int8_t* out) {
  return quantize(x, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {

HWY_EXPORT(quantize_int16);
HWY_EXPORT(quantize_int8);

float quantize_block(std::span<const float> x, std::span<std::int16_t> out) {
  assert(x.size() <= out.size() && out.size() == kLut6BlockColumns<std::int16_t>);
  return HWY_DYNAMIC_DISPATCH(quantize_int16)(x.data(), x.size(), out.data());
}

float quantize_block(std::span<const float> x, std::span<std::int8_t> out) {
  assert(x.size() <= out.size() && out.size() == kLut6BlockColumns<std::int8_t>);
  return HWY_DYNAMIC_DISPATCH(quantize_int8)(x.data(), x.size(), out.data());
}

}  // namespace clefkit
#endif  // HWY_ONCE
