#include "clefkit/quant/palettize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "clefkit/base/bytes.h"
#include "clefkit/base/error.h"

namespace clefkit {
namespace {

struct MethodName {
  PaletteMethod method;
  std::string_view name;
};
constexpr std::array<MethodName, 4> kMethodNames{{{PaletteMethod::kOptimal, "optimal"},
                                                  {PaletteMethod::kOriginal, "original"},
                                                  {PaletteMethod::kFast, "fast"},
                                                  {PaletteMethod::kGrid8, "grid8"}}};

GridPalette search_palette(const ValueCounts& weights, const PaletteOptions& options) {
  switch (options.method) {
    case PaletteMethod::kOptimal:
      return {optimal_palette(weights), 0.0};
    case PaletteMethod::kOriginal:
      return {original_palette(weights, options.rounds), 0.0};
    case PaletteMethod::kFast:
      return {fast_palette(weights, options.rounds), 0.0};
    case PaletteMethod::kGrid8:
      return grid8_palette(weights);
  }
  return {};
}

void pack_row(std::span<const BFloat16> weights, const std::vector<std::uint8_t>& index_of_bits,
              std::uint8_t* out) {
  const std::uint8_t* const table = index_of_bits.data();
  for (std::size_t i = 0; i < weights.size(); i += 4, out += 3) {
    const std::uint32_t bits = static_cast<std::uint32_t>(
        table[weights[i].bits] | table[weights[i + 1].bits] << 6 |
        table[weights[i + 2].bits] << 12 | table[weights[i + 3].bits] << 18);
    out[0] = static_cast<std::uint8_t>(bits);
    out[1] = static_cast<std::uint8_t>(bits >> 8);
    out[2] = static_cast<std::uint8_t>(bits >> 16);
  }
}

}  // namespace

std::string_view to_string(PaletteMethod method) {
  const auto found = std::ranges::find(kMethodNames, method, &MethodName::method);
  assert(found != kMethodNames.end());
  return found->name;
}

std::optional<PaletteMethod> parse_palette_method(std::string_view name) {
  const auto found = std::ranges::find(kMethodNames, name, &MethodName::name);
  if (found == kMethodNames.end()) return std::nullopt;
  return found->method;
}

GroupPalettizer::GroupPalettizer(PaletteOptions options)
    : options_(options), index_of_bits_(std::size_t{1} << 16) {}

PalettizedGroup GroupPalettizer::palettize(MatrixView<const BFloat16> weights,
                                           const std::string& where, std::size_t first_row,
                                           std::span<std::uint8_t> packed_indices) {
  const std::size_t bytes_per_row = weights.columns / 4 * 3;
  assert(weights.columns % 4 == 0 && packed_indices.size() == weights.rows * bytes_per_row);
  counter_.count(weights, where, first_row, values_);
  const GridPalette found = search_palette(values_, options_);

  PalettizedGroup group;
  group.grid_scale = static_cast<float>(found.scale);
  std::ranges::transform(found.values, group.palette.begin(),
                         [](double entry) { return to_half(entry); });
  assign(group);
  for (std::size_t row = 0; row < weights.rows; ++row)
    pack_row(weights.row(row), index_of_bits_, packed_indices.data() + row * bytes_per_row);
  return group;
}

// Fills index_of_bits_ and the errors.
void GroupPalettizer::assign(PalettizedGroup& group) {
  std::array<double, Lut6Matrix::kPaletteSize> entries;
  std::ranges::transform(group.palette, entries.begin(),
                         [](Half entry) { return static_cast<double>(to_float(entry)); });
  std::size_t index = 0;
  std::size_t lowest = 0;  // Of the entries that equal entry `index`.
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double value = values_.value(i);
    // The sum of two FP16 values is exact, so ties are seen, and go to the lower index.
    while (index + 1 < entries.size() && value > (entries[index] + entries[index + 1]) / 2) {
      ++index;
      if (entries[index] != entries[lowest]) lowest = index;
    }
    const double error = std::fabs(value - entries[index]);
    group.squared_error += values_.count(i) * error * error;
    group.max_abs_error = std::max(group.max_abs_error, error);
    group.weight_square_sum += values_.count(i) * value * value;
    const BFloat16 weight = to_bfloat16(static_cast<float>(value));
    index_of_bits_[weight.bits] = static_cast<std::uint8_t>(lowest);
    if (value == 0.0) index_of_bits_[0x8000] = static_cast<std::uint8_t>(lowest);  // −0.
  }
}

PalettizedMatrix palettize_matrix(const ComputeContext& context, MatrixView<const BFloat16> weights,
                                  const PaletteOptions& options, const std::string& where) {
  if (weights.rows == 0 || weights.columns == 0 || weights.rows % kRowsPerPalette != 0 ||
      weights.columns % 4 != 0) {
    throw_error(ErrorCode::kInvalidArgument, where,
                "{}x{} weights, expected rows in sixteens and columns in fours", weights.rows,
                weights.columns);
  }
  PalettizedMatrix result;
  result.shape = {
      .rows = weights.rows, .columns = weights.columns, .rows_per_palette = kRowsPerPalette};
  const std::size_t group_count = result.shape.palette_count();
  const std::size_t bytes_per_group = kRowsPerPalette * result.shape.bytes_per_row();
  result.packed_indices.resize(group_count * bytes_per_group);
  std::vector<PalettizedGroup> groups(group_count);
  std::vector<std::optional<GroupPalettizer>> palettizers(context.executor.thread_count());
  context.parallel_for(group_count, [&](std::size_t index, std::size_t worker) {
    if (!palettizers[worker]) palettizers[worker].emplace(options);
    const std::size_t first_row = index * kRowsPerPalette;
    groups[index] = palettizers[worker]->palettize(
        weights.rows_from(first_row, kRowsPerPalette), where, first_row,
        std::span(result.packed_indices).subspan(index * bytes_per_group, bytes_per_group));
  });

  double squared_error = 0.0;
  double weight_square_sum = 0.0;
  result.palettes.reserve(group_count * Lut6Matrix::kPaletteSize);
  for (const PalettizedGroup& group : groups) {
    result.palettes.insert(result.palettes.end(), group.palette.begin(), group.palette.end());
    if (options.method == PaletteMethod::kGrid8) result.grid_scales.push_back(group.grid_scale);
    squared_error += group.squared_error;
    weight_square_sum += group.weight_square_sum;
    result.max_abs_error = std::max(result.max_abs_error, group.max_abs_error);
  }
  if (weight_square_sum > 0.0) result.relative_rmse = std::sqrt(squared_error / weight_square_sum);
  return result;
}

}  // namespace clefkit
