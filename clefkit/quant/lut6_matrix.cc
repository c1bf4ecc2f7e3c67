#include "clefkit/quant/lut6_matrix.h"

#include <cassert>

#include "clefkit/base/error.h"

namespace clefkit {

Lut6Matrix::Lut6Matrix(Shape shape, std::span<const std::uint8_t> packed_indices,
                       std::span<const Half> palettes, std::span<const float> grid_scales)
    : shape_(shape),
      packed_indices_(packed_indices),
      palettes_(palettes),
      grid_scales_(grid_scales) {
  if (shape.rows == 0 || shape.columns == 0 || shape.columns % 4 != 0 ||
      shape.rows_per_palette == 0 || shape.rows % shape.rows_per_palette != 0) {
    throw_error(ErrorCode::kCorruptData, "LUT-6 matrix",
                "shape {}x{} with a palette per {} rows, expected columns in fours and rows in "
                "whole groups",
                shape.rows, shape.columns, shape.rows_per_palette);
  }
  if (packed_indices.size() != shape.rows * shape.bytes_per_row()) {
    throw_error(ErrorCode::kCorruptData, "LUT-6 matrix", "{} bytes of indices, expected {}",
                packed_indices.size(), shape.rows * shape.bytes_per_row());
  }
  if (palettes.size() != shape.palette_count() * kPaletteSize) {
    throw_error(ErrorCode::kCorruptData, "LUT-6 matrix", "{} palette entries, expected {}",
                palettes.size(), shape.palette_count() * kPaletteSize);
  }
  if (!grid_scales.empty() && grid_scales.size() != shape.palette_count()) {
    throw_error(ErrorCode::kCorruptData, "LUT-6 matrix", "{} grid scales, expected {}",
                grid_scales.size(), shape.palette_count());
  }
}

void Lut6Matrix::dequantize_row(std::size_t row, std::span<float> out) const {
  assert(row < shape_.rows && out.size() == shape_.columns);
  const std::span<const std::uint8_t> packed = packed_row(row);
  const Palette entries = palette_of_row(row);
  for (std::size_t column = 0; column < shape_.columns; column += 4) {
    const std::uint8_t* const three = packed.data() + column / 4 * 3;
    const std::uint32_t bits = three[0] | three[1] << 8 | three[2] << 16;
    for (std::size_t i = 0; i < 4; ++i) out[column + i] = to_float(entries[bits >> (6 * i) & 63]);
  }
}

}  // namespace clefkit
