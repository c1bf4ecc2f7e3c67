#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clefkit/base/half.h"

namespace clefkit {

// View of a weight matrix palettized to 6 bits: each element is an index into the 64-entry palette
// shared by its group of rows. The byte layout is the one Core ML's `constexpr_lut_to_dense`
// reads (ane.md 4.2), so every backend uses one copy. Does not own the bytes: the mapped bundle
// must outlive the view.
class Lut6Matrix {
 public:
  static constexpr std::size_t kPaletteSize = 64;
  using Palette = std::span<const Half, kPaletteSize>;

  struct Shape {
    std::size_t rows = 0;
    std::size_t columns = 0;           // A multiple of 4: rows start on a byte.
    std::size_t rows_per_palette = 0;  // Divides `rows`.

    std::size_t bytes_per_row() const { return columns / 4 * 3; }
    std::size_t palette_count() const { return rows / rows_per_palette; }
  };

  Lut6Matrix() = default;
  // `grid_scales` is empty, or has one scale per palette: then each entry of that palette is
  // k · scale with |k| ≤ 127, except where the scale is 0 (bundle.md, `grid8`).
  // Throws Error(kCorruptData) unless the spans have the sizes `shape` implies.
  Lut6Matrix(Shape shape, std::span<const std::uint8_t> packed_indices,
             std::span<const Half> palettes, std::span<const float> grid_scales = {});

  const Shape& shape() const { return shape_; }

  std::span<const std::uint8_t> packed_indices() const { return packed_indices_; }
  std::span<const std::uint8_t> packed_row(std::size_t row) const {
    return packed_indices_.subspan(row * shape_.bytes_per_row(), shape_.bytes_per_row());
  }
  Palette palette(std::size_t group) const {
    return palettes_.subspan(group * kPaletteSize).first<kPaletteSize>();
  }
  Palette palette_of_row(std::size_t row) const { return palette(row / shape_.rows_per_palette); }
  // 0 where the palette of that group is not on a grid.
  float grid_scale(std::size_t group) const {
    return grid_scales_.empty() ? 0.0f : grid_scales_[group];
  }

  // Scalar reference for the SIMD kernels. `out` holds one row of floats.
  void dequantize_row(std::size_t row, std::span<float> out) const;

 private:
  Shape shape_;
  std::span<const std::uint8_t> packed_indices_;
  std::span<const Half> palettes_;
  std::span<const float> grid_scales_;
};

}  // namespace clefkit
