// Products of small float32 matrices, the inner loop of attention and the delta rule; included
// once for each instruction set.
//
// The left operand is read one element at a time, so it may lie in any two-strided way. The right
// operand and, if wanted, the result lie in panels: groups of panel_width() columns, rows after
// one another within a group, the last group padded. An element's sum runs over the depth in
// order, whatever tile it falls in, so a row of the result does not depend on the other rows.
#if defined(CLEFKIT_KERNELS_FLOAT_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CLEFKIT_KERNELS_FLOAT_MATMUL_INL_H_
#undef CLEFKIT_KERNELS_FLOAT_MATMUL_INL_H_
#else
#define CLEFKIT_KERNELS_FLOAT_MATMUL_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "clefkit/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {

HWY_INLINE std::size_t panel_width() { return 2 * hn::Lanes(FloatTag()); }

// Rows of one tile: with two vectors a row, 12 sums, enough to hide the latency of multiply-add
// and few enough for 16 registers.
constexpr std::size_t kTileRows = 6;

// Element (row, k) is at data[row · row_step + k · depth_step].
struct LeftOperand {
  const float* data;
  std::size_t row_step;
  std::size_t depth_step;
};

// Panel p starts at data + p · panel_step; its rows are panel_width() floats each, aligned.
struct RightPanels {
  const float* data;
  std::size_t panel_step;
};

// Columns of panel p of row r start at data + p · panel_step + r · row_step, aligned. Row-major
// results have a panel_step of panel_width().
struct Result {
  float* data;
  std::size_t row_step;
  std::size_t panel_step;
};

enum class Update { kReplace, kAdd };

template <Update kUpdate>
HWY_INLINE void store_sum(FloatTag d, FloatVector sum, float* to) {
  hn::Store(kUpdate == Update::kAdd ? hn::Add(hn::Load(d, to), sum) : sum, d, to);
}

template <std::size_t kRows, std::size_t kVectors, Update kUpdate>
HWY_INLINE void multiply_tile(const LeftOperand& left, std::size_t depth,
                              const float* HWY_RESTRICT panel, float* HWY_RESTRICT to,
                              std::size_t to_step) {
  static_assert(kRows >= 1 && kRows <= kTileRows && kVectors >= 1 && kVectors <= 2);
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t step = left.row_step;
  const float* HWY_RESTRICT a = left.data;
  // Named one by one: vectors of some targets cannot be array elements, and compilers spill them.
  auto s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00;
  auto s30 = s00, s31 = s00, s40 = s00, s41 = s00, s50 = s00, s51 = s00;
  const auto add_row = [&](FloatVector b0, FloatVector b1, const float* element, FloatVector& s0,
                           FloatVector& s1) HWY_ATTR {
    const auto broadcast = hn::Set(d, *element);
    s0 = hn::MulAdd(broadcast, b0, s0);
    if constexpr (kVectors == 2) s1 = hn::MulAdd(broadcast, b1, s1);
  };
  for (std::size_t k = 0; k < depth; ++k) {
    const auto b0 = hn::Load(d, panel);
    auto b1 = b0;
    if constexpr (kVectors == 2) b1 = hn::Load(d, panel + lanes);
    panel += 2 * lanes;
    add_row(b0, b1, a, s00, s01);
    if constexpr (kRows > 1) add_row(b0, b1, a + step, s10, s11);
    if constexpr (kRows > 2) add_row(b0, b1, a + 2 * step, s20, s21);
    if constexpr (kRows > 3) add_row(b0, b1, a + 3 * step, s30, s31);
    if constexpr (kRows > 4) add_row(b0, b1, a + 4 * step, s40, s41);
    if constexpr (kRows > 5) add_row(b0, b1, a + 5 * step, s50, s51);
    a += left.depth_step;
  }
  const auto store_row = [&](std::size_t row, FloatVector s0, FloatVector s1) HWY_ATTR {
    store_sum<kUpdate>(d, s0, to + row * to_step);
    if constexpr (kVectors == 2) store_sum<kUpdate>(d, s1, to + row * to_step + lanes);
  };
  store_row(0, s00, s01);
  if constexpr (kRows > 1) store_row(1, s10, s11);
  if constexpr (kRows > 2) store_row(2, s20, s21);
  if constexpr (kRows > 3) store_row(3, s30, s31);
  if constexpr (kRows > 4) store_row(4, s40, s41);
  if constexpr (kRows > 5) store_row(5, s50, s51);
}

template <std::size_t kVectors, Update kUpdate>
HWY_INLINE void multiply_panel(LeftOperand left, std::size_t rows, std::size_t depth,
                               const float* panel, float* to, std::size_t to_step) {
  for (; rows >= kTileRows; rows -= kTileRows) {
    multiply_tile<kTileRows, kVectors, kUpdate>(left, depth, panel, to, to_step);
    left.data += kTileRows * left.row_step;
    to += kTileRows * to_step;
  }
  switch (rows) {
    case 1:
      return multiply_tile<1, kVectors, kUpdate>(left, depth, panel, to, to_step);
    case 2:
      return multiply_tile<2, kVectors, kUpdate>(left, depth, panel, to, to_step);
    case 3:
      return multiply_tile<3, kVectors, kUpdate>(left, depth, panel, to, to_step);
    case 4:
      return multiply_tile<4, kVectors, kUpdate>(left, depth, panel, to, to_step);
    case 5:
      return multiply_tile<5, kVectors, kUpdate>(left, depth, panel, to, to_step);
    default:
      return;
  }
}

// to = left · right, or to += left · right: [rows, depth] · [depth, columns]. Columns of the last
// panel beyond `columns` are written too, up to a whole vector.
template <Update kUpdate>
HWY_NOINLINE void multiply(LeftOperand left, std::size_t rows, std::size_t depth, RightPanels right,
                           std::size_t columns, Result to) {
  const std::size_t width = panel_width();
  for (std::size_t first = 0; first < columns; first += width) {
    if (columns - first > width / 2) {
      multiply_panel<2, kUpdate>(left, rows, depth, right.data, to.data, to.row_step);
    } else {
      multiply_panel<1, kUpdate>(left, rows, depth, right.data, to.data, to.row_step);
    }
    right.data += right.panel_step;
    to.data += to.panel_step;
  }
}

// Copies rows [rows, columns] into panels of `panel_step` floats, zeros in the padding.
HWY_INLINE void pack_panels(const float* from, std::size_t from_step, std::size_t rows,
                            std::size_t columns, float* panels, std::size_t panel_step) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  for (; columns >= 2 * lanes; columns -= 2 * lanes, from += 2 * lanes, panels += panel_step) {
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const source = from + row * from_step;
      float* const to = panels + row * 2 * lanes;
      hn::Store(hn::LoadU(d, source), d, to);
      hn::Store(hn::LoadU(d, source + lanes), d, to + lanes);
    }
  }
  if (columns == 0) return;
  for (std::size_t row = 0; row < rows; ++row) {
    float* const to = panels + row * 2 * lanes;
    std::copy_n(from + row * from_step, columns, to);
    std::fill(to + columns, to + 2 * lanes, 0.0f);
  }
}

// Copies the transpose of rows [rows, columns] into the panels of a [columns, rows] matrix, zeros
// in the padding.
HWY_INLINE void pack_transposed_panels(const float* from, std::size_t from_step, std::size_t rows,
                                       std::size_t columns, float* panels, std::size_t panel_step) {
  const std::size_t width = panel_width();
  for (std::size_t first = 0; first < rows; first += width, panels += panel_step) {
    const std::size_t count = std::min(width, rows - first);
    if (count < width) std::fill_n(panels, columns * width, 0.0f);
    for (std::size_t row = 0; row < count; ++row) {
      const float* const source = from + (first + row) * from_step;
      for (std::size_t k = 0; k < columns; ++k) panels[k * width + row] = source[k];
    }
  }
}

// Copies panels back into rows [rows, columns].
HWY_INLINE void unpack_panels(const float* panels, std::size_t panel_step, std::size_t rows,
                              std::size_t columns, float* to, std::size_t to_step) {
  const std::size_t width = panel_width();
  for (std::size_t first = 0; first < columns; first += width, panels += panel_step) {
    const std::size_t count = std::min(width, columns - first);
    for (std::size_t row = 0; row < rows; ++row) {
      std::copy_n(panels + row * width, count, to + row * to_step + first);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#endif  // CLEFKIT_KERNELS_FLOAT_MATMUL_INL_H_
