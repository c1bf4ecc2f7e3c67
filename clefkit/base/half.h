#pragma once

#include <bit>
#include <cstdint>

namespace clefkit {

// IEEE binary16, as bits. Arithmetic happens in float.
struct Half {
  std::uint16_t bits = 0;
  friend bool operator==(Half, Half) = default;
};

// bfloat16: the upper half of a float, as bits.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(BFloat16, BFloat16) = default;
};

constexpr float kMaxHalf = 65504.0f;

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Exact, subnormals, infinities and NaN included.
float to_float(Half value);

// Round to nearest, ties to even; magnitudes from 65520 up become infinity.
Half to_half(float value);
// The same, rounded once from double.
Half to_half(double value);

// Round to nearest, ties to even; a NaN stays a NaN.
constexpr BFloat16 to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace clefkit
