#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace clefkit {

// By layer: what a program multiplies the input of the layer's down-projection with, a power of
// two; absent: 1.
using MlpFactors = std::map<std::size_t, double>;

inline constexpr std::uint64_t kLargestMlpFactor = 16;

// A layer's factor and what it was chosen from (choose_mlp_factor).
struct MlpScale {
  std::size_t layer = 0;
  std::uint64_t factor = 1;  // 1, 2, 4, 8 or 16.
  // What no input of the down-projection, and no sum of its products in whatever order, went
  // beyond. Powers of two: float32 sums differ in their last digits between instruction sets, and
  // a bundle's bytes must not.
  double largest_activation = 0, largest_sum = 0;
};

// The factors of a bundle's programs.
struct TextScales {
  std::string calibration_sha256{};  // Of the requests' text; empty when nothing was measured.
  std::uint64_t tokens = 0;          // Of those requests.
  std::vector<MlpScale> mlp{};       // In the order of the layers; one that is not there has 1.
};

inline MlpFactors mlp_factors(const TextScales& scales) {
  MlpFactors factors;
  for (const MlpScale& scale : scales.mlp) {
    factors[scale.layer] = static_cast<double>(scale.factor);
  }
  return factors;
}

}  // namespace clefkit
