#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/base/half.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/quant/lut6_matrix.h"
#include "clefkit/quant/palette_search.h"

// From BF16 weights to LUT-6: one palette for every 16 rows, 6-bit indices packed as
// Lut6Matrix reads them.
namespace clefkit {

enum class PaletteMethod { kOptimal, kOriginal, kFast, kGrid8 };  // See palette_search.h.

// "optimal", "original", "fast", "grid8".
std::string_view to_string(PaletteMethod method);
std::optional<PaletteMethod> parse_palette_method(std::string_view name);

struct PaletteOptions {
  PaletteMethod method = PaletteMethod::kOptimal;
  std::size_t rounds = 40;  // Of Lloyd's algorithm: kOriginal and kFast.
};

inline constexpr std::size_t kRowsPerPalette = 16;

// One group of rows.
struct PalettizedGroup {
  std::array<Half, Lut6Matrix::kPaletteSize> palette{};  // Ascending.
  float grid_scale = 0.0f;  // kGrid8: the palette's step, or 0 where it is on no grid.
  // Of the weights against the rounded palette.
  double squared_error = 0.0;
  double max_abs_error = 0.0;
  double weight_square_sum = 0.0;
};

// Palettizes groups one after the other, with tables that are reused: one object per thread.
class GroupPalettizer {
 public:
  explicit GroupPalettizer(PaletteOptions options);

  // `weights`: [rows, columns], columns a multiple of 4, one palette for all rows.
  // `packed_indices`: columns / 4 · 3 bytes a row. Throws as WeightCounter::count does.
  PalettizedGroup palettize(MatrixView<const BFloat16> weights, const std::string& where,
                            std::size_t first_row, std::span<std::uint8_t> packed_indices);

 private:
  void assign(PalettizedGroup& group);

  PaletteOptions options_;
  WeightCounter counter_;
  ValueCounts values_;
  std::vector<std::uint8_t> index_of_bits_;  // By the bits of a weight; valid for this group's.
};

struct PalettizedMatrix {
  Lut6Matrix::Shape shape;
  std::vector<std::uint8_t> packed_indices;
  std::vector<Half> palettes;      // [groups, 64]
  std::vector<float> grid_scales;  // [groups] for kGrid8, else empty.
  double relative_rmse = 0.0;      // sqrt(Σ error² / Σ weight²); 0 for zeros only.
  double max_abs_error = 0.0;

  // Valid as long as this object is.
  Lut6Matrix view() const { return Lut6Matrix(shape, packed_indices, palettes, grid_scales); }
};

// Palettizes a tensor, groups in parallel, to the same bits for every number of threads. `where`
// names it in errors. Throws Error: kInvalidArgument unless rows come in sixteens and columns in
// fours; kCorruptData for a weight that is no number or beyond FP16; kCancelled.
PalettizedMatrix palettize_matrix(const ComputeContext& context, MatrixView<const BFloat16> weights,
                                  const PaletteOptions& options, const std::string& where);

}  // namespace clefkit
