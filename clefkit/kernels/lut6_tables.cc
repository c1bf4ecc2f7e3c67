#include "clefkit/kernels/lut6_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace clefkit {
namespace {

constexpr float kLargestInt16 = 32767.0f;
constexpr float kLargestStep = 127.0f;
// 127 · 258 is the last multiple that an int16 holds.
constexpr int kInt16PerStep = 258;

using Values = std::array<float, Lut6Matrix::kPaletteSize>;

Values values_of(Lut6Matrix::Palette palette) {
  Values values;
  std::transform(palette.begin(), palette.end(), values.begin(),
                 [](Half entry) { return to_float(entry); });
  return values;
}

}  // namespace

std::optional<Lut6Table<std::int8_t>> make_lut6_int8_table(Lut6Matrix::Palette palette,
                                                           float grid_scale) {
  if (!(grid_scale > 0.0f) || !std::isfinite(grid_scale)) return std::nullopt;
  Lut6Table<std::int8_t> table{};
  table.scale = grid_scale;
  for (std::size_t i = 0; i < palette.size(); ++i) {
    const float value = to_float(palette[i]);
    const float step = std::nearbyint(value / grid_scale);
    if (!(std::abs(step) <= kLargestStep) || step * grid_scale != value) return std::nullopt;
    table.entries[i] = static_cast<std::int8_t>(step);
  }
  return table;
}

Lut6Table<std::int16_t> make_lut6_int16_table(Lut6Matrix::Palette palette, float grid_scale) {
  Lut6Table<std::int16_t> table{};
  if (const auto steps = make_lut6_int8_table(palette, grid_scale)) {
    std::transform(
        steps->entries.begin(), steps->entries.end(), table.entries.begin(),
        [](std::int8_t step) { return static_cast<std::int16_t>(step * kInt16PerStep); });
    table.scale = grid_scale / kInt16PerStep;
    return table;
  }
  const Values values = values_of(palette);
  float largest = 0.0f;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      table.scale = std::numeric_limits<float>::quiet_NaN();
      return table;
    }
    largest = std::max(largest, std::abs(value));
  }
  if (largest == 0.0f) return table;
  table.scale = largest / kLargestInt16;
  for (std::size_t i = 0; i < values.size(); ++i) {
    table.entries[i] =
        static_cast<std::int16_t>(std::nearbyint(values[i] / largest * kLargestInt16));
  }
  return table;
}

}  // namespace clefkit
