#include "clefkit/base/half.h"

#include <cmath>
#include <limits>

namespace clefkit {

float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Zero and subnormals: mantissa · 2^-24, exact in float.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

Half to_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7E00u)};
  if (magnitude >= 65520.0) return {static_cast<std::uint16_t>(sign | 0x7C00u)};
  // The spacing of binary16 at this magnitude; below 2^-14 it is the subnormals' 2^-24.
  int exponent = -14;
  if (magnitude >= 0x1p-14) exponent = std::ilogb(magnitude);
  const double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));  // Ties to even.
  // A carry out of the mantissa moves into the exponent by itself.
  const int biased = magnitude >= 0x1p-14 ? exponent + 14 : 0;
  return {static_cast<std::uint16_t>(sign | (static_cast<int>(units) + (biased << 10)))};
}

Half to_half(float value) { return to_half(static_cast<double>(value)); }

}  // namespace clefkit
