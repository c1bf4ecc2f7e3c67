#include "clefkit/kernels/lut6_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace clefkit {
namespace {

constexpr float kLargestInt16 = 32767.0f;
constexpr int kLargestStep = 127;
// 127 · 258 is the last multiple that an int16 holds.
constexpr int kInt16PerStep = 258;

using Values = std::array<float, Lut6Matrix::kPaletteSize>;

Values values_of(Lut6Matrix::Palette palette) {
  Values values;
  std::transform(palette.begin(), palette.end(), values.begin(),
                 [](Half entry) { return to_float(entry); });
  return values;
}

// The k of each k · scale. Empty when some entry is not on the grid, whatever the file says.
std::optional<std::array<std::int8_t, Lut6Matrix::kPaletteSize>> grid_steps(const Values& values,
                                                                            float scale) {
  if (!(scale > 0.0f) || !std::isfinite(scale)) return std::nullopt;
  std::array<std::int8_t, Lut6Matrix::kPaletteSize> steps;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float step = std::nearbyint(values[i] / scale);
    if (!(std::abs(step) <= kLargestStep) || step * scale != values[i]) return std::nullopt;
    steps[i] = static_cast<std::int8_t>(step);
  }
  return steps;
}

}  // namespace

Lut6Int16Table make_lut6_int16_table(Lut6Matrix::Palette palette, float grid_scale) {
  const Values values = values_of(palette);
  Lut6Int16Table table{};
  if (const auto steps = grid_steps(values, grid_scale)) {
    std::transform(steps->begin(), steps->end(), table.entries.begin(), [](std::int8_t step) {
      return static_cast<std::int16_t>(step * kInt16PerStep);
    });
    table.scale = grid_scale / kInt16PerStep;
    return table;
  }
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
