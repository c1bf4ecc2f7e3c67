#pragma once

#include <array>
#include <cstddef>

#include "clefkit/quant/lut6_matrix.h"
#include "clefkit/quant/value_counts.h"

// Searches for the 64 entries that stand for a group of weights with the least sum of squared
// errors: one-dimensional k-means. Everything is FP64 and happens on distinct values.
namespace clefkit {

// Ascending, not yet rounded to FP16. With fewer different entries the last one fills the rest.
using PaletteValues = std::array<double, Lut6Matrix::kPaletteSize>;

// The original recipe: from 32 quantiles and 32 values spread evenly from the smallest to the
// largest weight, `rounds` rounds of Lloyd's algorithm (assign to the nearest entry, ties to the
// lower; move each entry to the mean of its weights; an entry without weights stays).
PaletteValues original_palette(const ValueCounts& weights, std::size_t rounds);

// Lloyd's algorithm from 64 quantiles of density^(1/3), where the best entries of many levels lie.
PaletteValues fast_palette(const ValueCounts& weights, std::size_t rounds);

// The exact optimum.
PaletteValues optimal_palette(const ValueCounts& weights);

// The best 64 of the points k · scale, |k| <= 127.
struct GridPalette {
  PaletteValues values{};
  double scale = 0.0;  // 0: `values` are the optimum and on no grid.
};

// The exact best over the candidate scales: those of at most 4 significant bits from 0.8 · M / 127
// to the first one not below M / 127, M being the largest magnitude; k · scale is then exact in
// FP16. Keeps the optimum where the grid more than doubles the squared error, for a group of zeros,
// and where a candidate is no multiple of 2^-24, the spacing of FP16's subnormals.
GridPalette grid8_palette(const ValueCounts& weights);

// Of each weight to the nearest entry.
double squared_error(const ValueCounts& weights, const PaletteValues& palette);

}  // namespace clefkit
