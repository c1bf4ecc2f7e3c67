#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "clefkit/quant/lut6_matrix.h"

namespace clefkit {

// A palette as integers: entry i stands for entries[i] · scale.
template <typename Value>
struct Lut6Table {
  std::array<Value, Lut6Matrix::kPaletteSize> entries;
  float scale;
};

// Largest magnitude 32,767. With the activations' scale (lut6_activations.h) and blocks of 64 that
// measured best: relative RMSE 1.1e-4 to 1.7e-4, against 2.0e-4 to 6.2e-4 with 8,191.
// `grid_scale` as in Lut6Matrix: a palette on its grid is exact. A palette that holds an infinity
// or a NaN becomes zeros with a NaN scale, so that the results show it.
Lut6Table<std::int16_t> make_lut6_int16_table(Lut6Matrix::Palette palette, float grid_scale);

// The steps of a palette on a grid, magnitudes up to 127: exact. Empty when grid_scale is 0, or
// when the palette is not on that grid, whatever the file says.
std::optional<Lut6Table<std::int8_t>> make_lut6_int8_table(Lut6Matrix::Palette palette,
                                                           float grid_scale);

}  // namespace clefkit
