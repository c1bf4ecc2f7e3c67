#include "clefkit/backend/rotary.h"

#include <cassert>
#include <cmath>

namespace clefkit {

std::vector<float> rotary_frequencies(double theta, std::size_t dim) {
  std::vector<float> frequencies;
  for (std::size_t i = 0; i < dim / 2; ++i) {
    // The reference rounds the power and its inverse to float32 one after the other; at position
    // 16,000 one more bit would turn the angle by a thousandth.
    const auto exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    frequencies.push_back(1.0f / static_cast<float>(std::pow(theta, double{exponent})));
  }
  return frequencies;
}

void set_rotary_angle(float angle, float& cosine, float& sine) {
  cosine = static_cast<float>(std::cos(double{angle}));
  sine = static_cast<float>(std::sin(double{angle}));
}

RotaryAngles::RotaryAngles(double rope_theta, std::size_t rotary_dim,
                           std::span<const std::size_t> mrope_section)
    : frequencies_(rotary_frequencies(rope_theta, rotary_dim)) {
  const std::size_t height_count = mrope_section.size() > 1 ? mrope_section[1] : 0;
  const std::size_t width_count = mrope_section.size() > 2 ? mrope_section[2] : 0;
  for (std::size_t i = 0; i < half(); ++i) {
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
      set_rotary_angle(static_cast<float>(position) * frequencies_[i], cosines.row(token)[i],
                       sines.row(token)[i]);
    }
  }
}

}  // namespace clefkit
