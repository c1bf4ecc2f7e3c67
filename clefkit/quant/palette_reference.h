#pragma once

#include <array>
#include <cstddef>
#include <vector>

// The palettes of palette_search.h from their definitions, over plain weights: slow, for tests.
namespace clefkit::reference {

using Palette = std::array<double, 64>;

// Every weight to its nearest entry, one by one, `rounds` times.
Palette original_palette(std::vector<double> weights, std::size_t rounds);

// Dynamic programming over all pairs of distinct values, O(distinct² · 64).
Palette optimal_palette(const std::vector<double>& weights);

struct GridPalette {
  Palette values{};
  double scale = 0.0;
};

// Dynamic programming over all pairs of grid points, costs summed weight by weight.
GridPalette grid8_palette(const std::vector<double>& weights);

// Each weight to the entry that is nearest of all.
double squared_error(const std::vector<double>& weights, const Palette& palette);

}  // namespace clefkit::reference
