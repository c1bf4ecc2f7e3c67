#include "clefkit/backend/cpu/rotary.h"

#include <cassert>
#include <cmath>

namespace clefkit::cpu {

RotaryAngles::RotaryAngles(double rope_theta, std::size_t rotary_dim,
                           std::span<const std::size_t> mrope_section) {
  const std::size_t half = rotary_dim / 2;
  const std::size_t height_count = mrope_section.size() > 1 ? mrope_section[1] : 0;
  const std::size_t width_count = mrope_section.size() > 2 ? mrope_section[2] : 0;
  for (std::size_t i = 0; i < half; ++i) {
    // The reference rounds the power and its inverse to float32 one after the other; at position
    // 16,000 one more bit would turn the angle by a thousandth.
    const auto exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    frequencies_.push_back(1.0f / static_cast<float>(std::pow(rope_theta, double{exponent})));
    axes_.push_back(i % 3 == 1 && i < 3 * height_count  ? Axis::kHeight
                    : i % 3 == 2 && i < 3 * width_count ? Axis::kWidth
                                                        : Axis::kTemporal);
  }
}

void RotaryAngles::fill(std::span<const std::int32_t> temporal,
                        std::span<const std::int32_t> height, std::span<const std::int32_t> width,
                        MatrixView<float> cosines, MatrixView<float> sines) const {
  assert(temporal.size() == cosines.rows && height.size() == cosines.rows &&
         width.size() == cosines.rows && cosines.columns == half());
  for (std::size_t token = 0; token < cosines.rows; ++token) {
    for (std::size_t i = 0; i < half(); ++i) {
      const std::int32_t position = axes_[i] == Axis::kHeight  ? height[token]
                                    : axes_[i] == Axis::kWidth ? width[token]
                                                               : temporal[token];
      const float angle = static_cast<float>(position) * frequencies_[i];
      cosines.row(token)[i] = static_cast<float>(std::cos(double{angle}));
      sines.row(token)[i] = static_cast<float>(std::sin(double{angle}));
    }
  }
}

}  // namespace clefkit::cpu
