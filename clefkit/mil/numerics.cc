#include "clefkit/mil/numerics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "clefkit/base/half.h"

namespace clefkit::mil {
namespace {

constexpr double kMacLimit = 32768;
constexpr float kSmallestNormal = 0x1p-14f;

constexpr std::array<std::pair<NumericProfile, std::string_view>, 5> kNames{{
    {NumericProfile::kIdeal, "ideal"},
    {NumericProfile::kM1, "m1"},
    {NumericProfile::kH15g, "h15g"},
    {NumericProfile::kM5, "m5"},
    {NumericProfile::kStrict, "strict"},
}};

bool ties_go_away(NumericProfile profile) {
  return profile == NumericProfile::kH15g || profile == NumericProfile::kM5;
}

float half_ties_away(double value) {
  const Half even = to_half(value);
  const double nearest = to_float(even);
  if (!std::isfinite(nearest) || std::abs(value) <= std::abs(nearest)) {
    // From 65520 on, halfway to what would be the next number, both rules give infinity.
    return static_cast<float>(nearest);
  }
  const double next = to_float(Half{static_cast<std::uint16_t>(even.bits + 1)});
  const bool is_tie = std::isfinite(next) && value - nearest == next - value;
  return static_cast<float>(is_tie ? next : nearest);
}

// The 12 most significant bits, ties to even.
float round_to_12_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kDropped = 12;  // Of the 24 that a float has.
  const std::uint32_t even = (bits >> kDropped) & 1U;
  const std::uint32_t rounded = bits + ((1U << (kDropped - 1)) - 1U) + even;
  return std::bit_cast<float>(rounded & ~((1U << kDropped) - 1U));
}

// All of them keep watch of the sums on the way.
struct Sum {
  double value = 0;
  double largest = 0;
};

Sum sum_in_float(const float* x, const float* y, std::size_t count) {
  float sum = 0, largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += x[i] * y[i];
    largest = std::max(largest, std::abs(sum));
  }
  return {sum, largest};
}

Sum sum_of_m1(const float* x, const float* y, std::size_t count) {
  constexpr std::size_t kLanes = 4;
  float sum = 0, largest = 0;
  for (std::size_t i = 0; i < count; i += kLanes) {
    float tile = 0;
    for (std::size_t j = i; j < std::min(i + kLanes, count); ++j) {
      tile = round_to_12_bits(tile + x[j] * y[j]);
    }
    sum += tile;
    largest = std::max(largest, std::abs(sum));
  }
  return {sum, largest};
}

Sum sum_of_h15g(const float* x, const float* y, std::size_t count) {
  // Products of FP16 numbers in FP16 are multiples of 2^-24 below 2^16: 2^53 holds their sums.
  double sum = 0, largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float product = half_ties_away(static_cast<double>(x[i]) * y[i]);
    if (std::abs(product) < kSmallestNormal) product = 0;
    sum += product;
    largest = std::max(largest, std::abs(sum));
  }
  return {sum, largest};
}

}  // namespace

std::string_view to_string(NumericProfile profile) {
  return std::ranges::find(kNames, profile, &std::pair<NumericProfile, std::string_view>::first)
      ->second;
}

std::optional<NumericProfile> numeric_profile(std::string_view name) {
  for (const auto& [profile, its_name] : kNames) {
    if (its_name == name) return profile;
  }
  return std::nullopt;
}

bool is_hardware(NumericProfile profile) {
  return profile != NumericProfile::kIdeal && profile != NumericProfile::kStrict;
}

Dot dot(NumericProfile profile, const float* x, const float* y, std::size_t count) {
  const Sum sum = profile == NumericProfile::kM1     ? sum_of_m1(x, y, count)
                  : profile == NumericProfile::kH15g ? sum_of_h15g(x, y, count)
                                                     : sum_in_float(x, y, count);
  // A NaN is out of range as well.
  Dot result{round_to_half(profile, sum.value), sum.largest < kMacLimit};
  if (profile == NumericProfile::kH15g && !result.is_in_range) {
    result.value = 0;
  } else if (is_hardware(profile) && std::abs(result.value) >= kMacLimit) {
    result.value = std::copysign(std::numeric_limits<float>::infinity(), result.value);
  }
  return result;
}

float round_to_half(NumericProfile profile, double value) {
  if (is_hardware(profile)) {
    // What the units cannot compute is 0, and 0 has no sign.
    if (std::isnan(value) || value == 0) return 0;
  }
  return ties_go_away(profile) ? half_ties_away(value) : to_float(to_half(value));
}

}  // namespace clefkit::mil
