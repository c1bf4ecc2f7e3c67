#include "clefkit/quant/lut6_matrix.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

constexpr Half kOne{0x3C00}, kTwo{0x4000}, kMinusHalf{0xB800};

TEST(Lut6Matrix, UnpacksIndicesLowestBitsFirst) {
  // 1 | 2 << 6 | 3 << 12 | 63 << 18, worked out by hand.
  const std::array<std::uint8_t, 3> packed{0x81, 0x30, 0xFC};
  std::array<Half, Lut6Matrix::kPaletteSize> palette{};
  palette[1] = kOne;
  palette[2] = kTwo;
  palette[63] = kMinusHalf;
  const Lut6Matrix matrix({.rows = 1, .columns = 4, .rows_per_palette = 1}, packed, palette);

  std::array<float, 4> row{};
  matrix.dequantize_row(0, row);

  EXPECT_EQ(row, (std::array{1.0f, 2.0f, 0.0f, -0.5f}));
}

TEST(Lut6Matrix, GivesEachGroupOfRowsItsOwnPalette) {
  const std::array<std::uint8_t, 4 * 3> zeros{};
  std::vector<Half> palettes(2 * Lut6Matrix::kPaletteSize);
  palettes[0] = kOne;
  palettes[Lut6Matrix::kPaletteSize] = kTwo;
  const Lut6Matrix matrix({.rows = 4, .columns = 4, .rows_per_palette = 2}, zeros, palettes);

  EXPECT_EQ(to_float(matrix.palette_of_row(1)[0]), 1.0f);
  EXPECT_EQ(to_float(matrix.palette_of_row(2)[0]), 2.0f);
}

TEST(Lut6Matrix, RejectsSpansThatDoNotMatchTheShape) {
  const std::array<std::uint8_t, 3> packed{};
  const std::array<Half, Lut6Matrix::kPaletteSize> palette{};
  const std::array<float, 2> two_scales{};
  const Lut6Matrix::Shape shape{.rows = 1, .columns = 4, .rows_per_palette = 1};

  EXPECT_THROW(Lut6Matrix(shape, std::span(packed).first(2), palette), Error);
  EXPECT_THROW(Lut6Matrix(shape, packed, std::span(palette).first(63)), Error);
  EXPECT_THROW(Lut6Matrix(shape, packed, palette, two_scales), Error);
  EXPECT_THROW(Lut6Matrix({.rows = 1, .columns = 3, .rows_per_palette = 1}, packed, palette),
               Error);
  EXPECT_THROW(Lut6Matrix({.rows = 3, .columns = 4, .rows_per_palette = 2}, packed, palette),
               Error);
}

}  // namespace
}  // namespace clefkit
