#include "clefkit/quant/palette_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "clefkit/quant/monge_path.h"

namespace clefkit {
namespace {

constexpr std::size_t kEntries = Lut6Matrix::kPaletteSize;

// Entry k of a sorted palette stands for the distinct values [bounds[k], bounds[k + 1]).
using Bounds = std::array<std::size_t, kEntries + 1>;

// `bounds` on entry is any guess, e.g. of the palette before; most bounds move little in a round.
void assign_to_nearest(const ValueCounts& weights, const PaletteValues& palette, Bounds& bounds) {
  bounds.front() = 0;
  bounds.back() = weights.size();
  for (std::size_t k = kEntries - 1; k > 0; --k) {
    if (palette[k - 1] == palette[k]) {  // The lower of two equal entries takes all.
      bounds[k] = bounds[k + 1];
      continue;
    }
    const double middle = (palette[k - 1] + palette[k]) / 2;  // Ties go to the lower entry.
    std::size_t bound = bounds[k];
    while (bound > 0 && weights.value(bound - 1) > middle) --bound;
    while (bound < weights.size() && weights.value(bound) <= middle) ++bound;
    bounds[k] = bound;
  }
}

void run_lloyd(const ValueCounts& weights, std::size_t rounds, PaletteValues& palette) {
  std::ranges::sort(palette);
  Bounds bounds;
  for (std::size_t k = 0; k < bounds.size(); ++k) bounds[k] = weights.size() * k / kEntries;
  for (std::size_t round = 0; round < rounds; ++round) {
    assign_to_nearest(weights, palette, bounds);
    const PaletteValues before = palette;
    for (std::size_t k = 0; k < kEntries; ++k) {
      if (bounds[k] != bounds[k + 1]) palette[k] = weights.between(bounds[k], bounds[k + 1]).mean();
    }
    // An entry that stayed may have been overtaken.
    if (!std::ranges::is_sorted(palette)) std::ranges::sort(palette);
    if (palette == before) break;  // Further rounds change nothing.
  }
}

// A cumulative curve through the weights. A step of it is the cube root of mass · width² of a bin,
// which is density^(1/3) integrated: equal steps give the best density of entries when there are
// many (Panter and Dite).
struct DensityCurve {
  std::vector<double> edges;    // Ascending, the first is the smallest weight.
  std::vector<double> heights;  // One per edge, from 0.
};

DensityCurve density_curve(const ValueCounts& weights) {
  constexpr double kBins = 1024;
  const double full_mass = weights.weight_count() / kBins;
  const double full_width = (weights.largest() - weights.smallest()) / kBins;
  DensityCurve curve{{weights.smallest()}, {0.0}};
  std::vector<double> masses{0.0};
  double mass = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    mass += weights.count(i);
    const double width = weights.value(i) - curve.edges.back();
    const bool is_full = mass >= full_mass || width >= full_width || i + 1 == weights.size();
    if (!is_full || width == 0.0) continue;
    curve.edges.push_back(weights.value(i));
    curve.heights.push_back(std::cbrt(mass * width * width));
    masses.push_back(std::exchange(mass, 0.0));
  }
  // The theory would give an outlier far from all others many entries; one each is enough.
  constexpr int kRefinements = 8;  // A cap lowers the sum that it depends on.
  for (int i = 0; i < kRefinements; ++i) {
    const double entry =
        std::accumulate(curve.heights.begin(), curve.heights.end(), 0.0) / kEntries;
    for (std::size_t bin = 1; bin < masses.size(); ++bin)
      curve.heights[bin] = std::min(curve.heights[bin], masses[bin] * entry);
  }
  std::partial_sum(curve.heights.begin(), curve.heights.end(), curve.heights.begin());
  return curve;
}

PaletteValues every_value(const ValueCounts& weights) {
  assert(weights.size() <= kEntries);
  PaletteValues palette;
  for (std::size_t k = 0; k < kEntries; ++k)
    palette[k] = weights.value(std::min(k, weights.size() - 1));
  return palette;
}

// The 255 points of one scale with what the dynamic programming over them needs.
class Grid {
 public:
  static constexpr int kLargest = 127;

  Grid(const ValueCounts& weights, double scale)
      : scale_(scale),
        // k · scale must not leave FP16; points beyond the largest weight are no loss.
        extent_(
            static_cast<int>(std::min<double>(kLargest, static_cast<double>(kMaxHalf) / scale))) {
    // Sums up to every point and every middle of two points.
    std::size_t bound = 0;
    for (int half_steps = -2 * extent_; half_steps <= 2 * extent_; ++half_steps) {
      const double limit = half_steps * (scale / 2);
      while (bound < weights.size() && weights.value(bound) <= limit) ++bound;
      below_.push_back(weights.between(0, bound));
    }
    all_ = weights.between(0, weights.size());
  }

  // Node 0 lies left of all points, then come the points, then a node right of them.
  std::size_t last_node() const { return 2 * static_cast<std::size_t>(extent_) + 2; }
  double point(std::uint32_t node) const { return (static_cast<int>(node) - 1 - extent_) * scale_; }

  // Squared error of the weights between two neighbours.
  double operator()(std::uint32_t left, std::uint32_t right) const {
    const bool is_first = left == 0;
    const bool is_last = right == last_node();
    if (is_first && is_last) return std::numeric_limits<double>::infinity();
    if (is_first) return up_to(right).squared_error(point(right));
    if (is_last) return difference(all_, up_to(left)).squared_error(point(left));
    const ValueCounts::Sums& middle = below_[left + right - 2];
    return difference(middle, up_to(left)).squared_error(point(left)) +
           difference(up_to(right), middle).squared_error(point(right));
  }

 private:
  static ValueCounts::Sums difference(const ValueCounts::Sums& a, const ValueCounts::Sums& b) {
    return {a.count - b.count, a.sum - b.sum, a.square_sum - b.square_sum};
  }
  const ValueCounts::Sums& up_to(std::uint32_t node) const { return below_[2 * (node - 1)]; }

  double scale_;
  int extent_;
  std::vector<ValueCounts::Sums> below_;
  ValueCounts::Sums all_;
};

// Ascending.
std::vector<double> candidate_scales(double largest_magnitude) {
  std::vector<double> scales;
  const double exact = largest_magnitude / Grid::kLargest;
  // The values of 4 significant bits in this binade are 8 … 15 units.
  double unit = std::ldexp(1.0, std::ilogb(0.8 * exact) - 3);
  int mantissa = 8;
  do {
    const double scale = mantissa * unit;
    if (scale >= 0.8 * exact) scales.push_back(scale);
    if (++mantissa == 16) {
      mantissa = 8;
      unit *= 2;
    }
  } while (scales.empty() || scales.back() < exact);
  return scales;
}

bool is_exact_in_half(double scale) {
  const double units = scale * 0x1p24;
  return units == std::floor(units);
}

struct OptimalPalette {
  PaletteValues values;
  double penalty;  // Of MongePath.
};

OptimalPalette search_optimum(const ValueCounts& weights) {
  const auto cost = [&](std::uint32_t first, std::uint32_t last) {
    return weights.between(first, last).squared_error();
  };
  // The expected error is height³ / (12 · entries²), by the same theory as the curve.
  const double height = density_curve(weights).heights.back();
  const double penalty = height * height * height / (6.0 * kEntries * kEntries * kEntries);
  const MongePath path = shortest_monge_path(weights.size(), kEntries, cost, penalty);
  assert(path.nodes.size() == kEntries + 1);
  OptimalPalette optimum{{}, path.penalty};
  for (std::size_t k = 0; k < kEntries; ++k)
    optimum.values[k] = weights.between(path.nodes[k], path.nodes[k + 1]).mean();
  return optimum;
}

}  // namespace

PaletteValues original_palette(const ValueCounts& weights, std::size_t rounds) {
  constexpr std::size_t kQuantiles = kEntries / 2;
  PaletteValues palette;
  std::size_t index = 0;  // Distinct value that holds the rank `rank`.
  double passed = 0.0;    // Weights before it.
  for (std::size_t i = 0; i < kQuantiles; ++i) {
    const double rank = (static_cast<double>(i) + 0.5) / kQuantiles * (weights.weight_count() - 1);
    const double lower = std::floor(rank);
    while (passed + weights.count(index) <= lower) passed += weights.count(index++);
    const bool next_differs =
        lower + 1 >= passed + weights.count(index) && index + 1 < weights.size();
    const double from = weights.value(index);
    const double to = weights.value(next_differs ? index + 1 : index);
    palette[i] = from + (rank - lower) * (to - from);
  }
  const double range = weights.largest() - weights.smallest();
  for (std::size_t i = 0; i < kQuantiles; ++i) {
    palette[kQuantiles + i] =
        weights.smallest() + range * static_cast<double>(i) / (kQuantiles - 1);
  }
  run_lloyd(weights, rounds, palette);
  return palette;
}

PaletteValues fast_palette(const ValueCounts& weights, std::size_t rounds) {
  if (weights.size() <= kEntries) return every_value(weights);
  const DensityCurve curve = density_curve(weights);
  PaletteValues palette;
  std::size_t bin = 1;
  for (std::size_t k = 0; k < kEntries; ++k) {
    const double height = (static_cast<double>(k) + 0.5) / kEntries * curve.heights.back();
    while (curve.heights[bin] < height) ++bin;
    const double part =
        (height - curve.heights[bin - 1]) / (curve.heights[bin] - curve.heights[bin - 1]);
    palette[k] = curve.edges[bin - 1] + part * (curve.edges[bin] - curve.edges[bin - 1]);
  }
  run_lloyd(weights, rounds, palette);
  return palette;
}

PaletteValues optimal_palette(const ValueCounts& weights) {
  if (weights.size() <= kEntries) return every_value(weights);
  return search_optimum(weights).values;
}

GridPalette grid8_palette(const ValueCounts& weights) {
  const bool few_values = weights.size() <= kEntries;
  OptimalPalette optimum{};
  if (few_values) {
    optimum = {every_value(weights), 0.0};
  } else {
    optimum = search_optimum(weights);
  }
  const GridPalette off_grid{optimum.values, 0.0};
  const double largest = std::max(-weights.smallest(), weights.largest());
  if (largest == 0.0) return off_grid;
  const std::vector<double> scales = candidate_scales(largest);
  if (!std::ranges::all_of(scales, is_exact_in_half)) return off_grid;

  GridPalette best;
  double best_error = std::numeric_limits<double>::infinity();
  double penalty = few_values ? largest * largest / kEntries : optimum.penalty;
  for (const double scale : scales) {
    const Grid grid(weights, scale);
    // Points lie between links, and the first and the last link lead to no further point.
    const MongePath path = shortest_monge_path(grid.last_node(), kEntries + 1, grid, penalty);
    penalty = path.penalty;
    PaletteValues values;
    for (std::size_t k = 0; k < kEntries; ++k)
      values[k] = grid.point(path.nodes[std::min(k + 1, path.nodes.size() - 2)]);
    // Exactly 0 for weights on the grid, which the path's length, a sum of differences, is not.
    const double error = squared_error(weights, values);
    if (error > best_error) continue;  // Ties go to the larger scale.
    best_error = error;
    best = {values, scale};
  }
  return best_error > 2.0 * squared_error(weights, optimum.values) ? off_grid : best;
}

double squared_error(const ValueCounts& weights, const PaletteValues& palette) {
  Bounds bounds{};
  assign_to_nearest(weights, palette, bounds);
  double total = 0.0;
  for (std::size_t k = 0; k < kEntries; ++k) {
    for (std::size_t i = bounds[k]; i < bounds[k + 1]; ++i) {
      const double error = weights.value(i) - palette[k];
      total += weights.count(i) * error * error;
    }
  }
  return total;
}

}  // namespace clefkit
