#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "clefkit/quant/lut6_matrix.h"

namespace clefkit {

// Random weights in the form a bundle maps: for tests and benchmarks.
struct Lut6TestMatrix {
  Lut6Matrix::Shape shape;
  std::vector<std::uint8_t> packed_indices;
  std::vector<Half> palettes;
  std::vector<float> grid_scales;

  Lut6Matrix view() const { return {shape, packed_indices, palettes, grid_scales}; }

  // Indices at random; each palette holds 64 normal values, one of them six times as large.
  static Lut6TestMatrix random(Lut6Matrix::Shape shape, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.02f);
    Lut6TestMatrix matrix{shape, {}, {}, {}};
    matrix.packed_indices.resize(shape.rows * shape.bytes_per_row());
    for (std::uint8_t& byte : matrix.packed_indices) byte = static_cast<std::uint8_t>(random());
    matrix.palettes.resize(shape.palette_count() * Lut6Matrix::kPaletteSize);
    for (Half& entry : matrix.palettes) entry = to_half(normal(random));
    for (std::size_t i = 63; i < matrix.palettes.size(); i += 64)
      matrix.palettes[i] = to_half(0.3f);
    return matrix;
  }

  // The same with every `period`-th palette on a grid of 127 steps to each side.
  static Lut6TestMatrix random_on_grid(Lut6Matrix::Shape shape, unsigned seed,
                                       std::size_t period = 2) {
    std::mt19937 random(seed);
    Lut6TestMatrix matrix = Lut6TestMatrix::random(shape, seed);
    matrix.grid_scales.resize(shape.palette_count());
    constexpr float kScale = 0x1.4p-10f;
    for (std::size_t group = 0; group < shape.palette_count(); group += period) {
      matrix.grid_scales[group] = kScale;
      for (std::size_t i = 0; i < Lut6Matrix::kPaletteSize; ++i) {
        const int step = static_cast<int>(random() % 255) - 127;
        matrix.palettes[group * Lut6Matrix::kPaletteSize + i] =
            to_half(static_cast<float>(step) * kScale);
      }
    }
    return matrix;
  }
};

}  // namespace clefkit
