#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clefkit/base/matrix_view.h"

namespace clefkit {

// theta^(−2i / dim) for i < dim / 2, rounded as the reference rounds them.
std::vector<float> rotary_frequencies(double theta, std::size_t dim);

// Cosine and sine of an angle that is a float32, each rounded once.
void set_rotary_angle(float angle, float& cosine, float& sine);

// Angles of interleaved multimodal rotary embedding (model.md 2.3), the same for every full
// attention layer.
class RotaryAngles {
 public:
  // `mrope_section` counts the frequencies that turn with the temporal, vertical and horizontal
  // position; `rotary_dim` is twice the number of frequencies.
  RotaryAngles(double rope_theta, std::size_t rotary_dim,
               std::span<const std::size_t> mrope_section);

  std::size_t half() const { return frequencies_.size(); }

  // One row of cosines and sines [tokens, half] for each position.
  void fill(std::span<const std::int32_t> temporal, std::span<const std::int32_t> height,
            std::span<const std::int32_t> width, MatrixView<float> cosines,
            MatrixView<float> sines) const;

 private:
  enum class Axis { kTemporal, kHeight, kWidth };

  std::vector<float> frequencies_;
  std::vector<Axis> axes_;
};

}  // namespace clefkit
