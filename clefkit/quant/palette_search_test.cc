#include "clefkit/quant/palette_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "clefkit/quant/monge_path.h"
#include "clefkit/quant/palette_reference.h"

namespace clefkit {
namespace {

constexpr double kRelative = 1e-9;

std::vector<double> rounded(std::vector<double> weights) {
  for (double& weight : weights)
    weight = static_cast<double>(to_float(to_bfloat16(static_cast<float>(weight))));
  return weights;
}

ValueCounts counts_of(const std::vector<double>& weights) {
  std::vector<BFloat16> stored;
  for (const double weight : weights) stored.push_back(to_bfloat16(static_cast<float>(weight)));
  ValueCounts counts;
  WeightCounter().count({stored.data(), 1, stored.size()}, "", 0, counts);
  return counts;
}

std::vector<double> draw(std::size_t count, const std::function<double(std::mt19937&)>& one) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<double> weights(count);
  std::ranges::generate(weights, [&] { return one(random); });
  return rounded(weights);
}

double gaussian(std::mt19937& random) { return std::normal_distribution(0.0, 0.02)(random); }

struct Sample {
  std::string name;
  std::vector<double> weights;
};

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const std::size_t count : {64, 65, 66, 100, 257, 640})
    all.push_back({"gaussian_" + std::to_string(count), draw(count, gaussian)});
  all.push_back({"heavy_tails", draw(500, [](std::mt19937& random) {
                   return 0.01 * std::student_t_distribution(2.0)(random);
                 })});
  all.push_back({"uniform", draw(300, std::uniform_real_distribution(-1.0, 1.0))});
  all.push_back({"positive", draw(300, std::exponential_distribution(3.0))});
  all.push_back({"negative", draw(300, [](std::mt19937& random) {
                   return -5.0 - std::exponential_distribution(1.0)(random);
                 })});
  all.push_back({"two_hills", draw(400, [](std::mt19937& random) {
                   return gaussian(random) + (random() % 2 == 0 ? 1.0 : -1.0);
                 })});
  all.push_back({"one_outlier", draw(400, gaussian)});
  all.back().weights[7] = 65280.0;
  all.push_back({"two_outliers", draw(400, gaussian)});
  all.back().weights[7] = 30.0;
  all.back().weights[8] = -16.0;
  all.push_back({"large", draw(400, std::normal_distribution(0.0, 16000.0))});
  all.push_back({"subnormal_in_fp16", draw(400, std::normal_distribution(0.0, 1e-6))});
  all.push_back({"subnormal_in_bf16", draw(400, std::normal_distribution(0.0, 1e-38))});
  // Many ties: whole numbers, each several times.
  all.push_back({"whole_numbers", draw(700, [](std::mt19937& random) {
                   return static_cast<double>(random() % 200) - 100.0;
                 })});
  all.push_back({"evenly_spaced", {}});
  for (int i = -100; i <= 100; ++i) all.back().weights.push_back(i / 64.0);
  all.push_back({"few_values", draw(400, [](std::mt19937& random) {
                   return static_cast<double>(random() % 30) * 0.37;
                 })});
  all.push_back({"as_many_values_as_entries", {}});
  for (int i = 0; i < 128; ++i) all.back().weights.push_back(i / 2 - 32);
  all.push_back({"two_values", {-0.5, 0.25, 0.25, 0.25}});
  all.push_back({"constant", std::vector<double>(64, 0.125)});
  all.push_back({"zeros", std::vector<double>(64, 0.0)});
  return all;
}

class PaletteSearch : public testing::TestWithParam<Sample> {
 protected:
  const std::vector<double>& weights() const { return GetParam().weights; }
  ValueCounts counts() const { return counts_of(weights()); }
  double error(const PaletteValues& palette) const {
    EXPECT_TRUE(std::ranges::is_sorted(palette));
    return reference::squared_error(weights(), palette);
  }
};

TEST_P(PaletteSearch, OptimumHasTheLeastErrorOfAll) {
  const double expected =
      reference::squared_error(weights(), reference::optimal_palette(weights()));
  EXPECT_NEAR(error(optimal_palette(counts())), expected, kRelative * expected);
}

TEST_P(PaletteSearch, OriginalFollowsLloydOverEveryWeight) {
  for (const std::size_t rounds : {0, 1, 2, 40}) {
    const double expected =
        reference::squared_error(weights(), reference::original_palette(weights(), rounds));
    // A mean of equal weights is a rounding error away from them in one of the two.
    const double scale = reference::squared_error(weights(), {});
    EXPECT_NEAR(error(original_palette(counts(), rounds)), expected,
                kRelative * expected + 1e-28 * scale)
        << rounds << " rounds";
  }
}

TEST_P(PaletteSearch, Grid8HasTheLeastErrorOnTheBestScale) {
  const reference::GridPalette expected = reference::grid8_palette(weights());
  const GridPalette found = grid8_palette(counts());
  EXPECT_EQ(found.scale, expected.scale);
  const double expected_error = reference::squared_error(weights(), expected.values);
  EXPECT_NEAR(error(found.values), expected_error, kRelative * expected_error);
  if (found.scale == 0.0) return;
  for (const double value : found.values) {
    const double steps = value / found.scale;
    EXPECT_EQ(steps, std::nearbyint(steps));
    EXPECT_LE(std::fabs(steps), 127);
    EXPECT_EQ(static_cast<double>(to_float(to_half(value))), value) << "not exact in FP16";
  }
}

TEST_P(PaletteSearch, FastIsNoBetterThanTheOptimum) {
  const double optimum = reference::squared_error(weights(), reference::optimal_palette(weights()));
  EXPECT_GE(error(fast_palette(counts(), 40)), optimum * (1 - kRelative));
}

TEST_P(PaletteSearch, SquaredErrorIsThatOfEveryWeight) {
  const PaletteValues palette = original_palette(counts(), 3);
  const double expected = reference::squared_error(weights(), palette);
  EXPECT_NEAR(squared_error(counts(), palette), expected, kRelative * expected);
}

INSTANTIATE_TEST_SUITE_P(Samples, PaletteSearch, testing::ValuesIn(samples()),
                         [](const testing::TestParamInfo<Sample>& sample) {
                           return sample.param.name;
                         });

TEST(OptimalPalette, HoldsEveryValueWhenTheyAreFewAndFillsUpWithTheLast) {
  const PaletteValues palette = optimal_palette(counts_of({3, -1, 3, 0.5}));
  EXPECT_EQ(palette[0], -1.0);
  EXPECT_EQ(palette[1], 0.5);
  for (std::size_t k = 2; k < palette.size(); ++k) EXPECT_EQ(palette[k], 3.0);
}

TEST(Grid8Palette, IsExactForWeightsOnAGrid) {
  std::vector<double> weights;
  for (int k = -31; k <= 31; ++k) weights.push_back(4 * k * 0x1p-10);
  weights.push_back(127 * 0x1p-10);
  const GridPalette palette = grid8_palette(counts_of(weights));
  EXPECT_EQ(palette.scale, 0x1p-10);
  EXPECT_EQ(squared_error(counts_of(weights), palette.values), 0.0);
}

// Too many values for the plain reference: against dynamic programming over every number of links.
TEST(OptimalPalette, AgreesWithTheLayeredSearchOnAWholeGroup) {
  std::vector<double> weights = draw(16 * 4096, gaussian);
  for (std::size_t i = 0; i < weights.size(); i += 4096) weights[i] *= 6;
  const ValueCounts counts = counts_of(weights);
  ASSERT_GT(counts.size(), 2000);
  const auto cost = [&](std::uint32_t first, std::uint32_t last) {
    return counts.between(first, last).squared_error();
  };
  const std::vector<std::uint32_t> path = layered_monge_path(counts.size(), 64, cost);
  const PaletteValues palette = optimal_palette(counts);
  for (std::size_t k = 0; k < palette.size(); ++k)
    EXPECT_EQ(palette[k], counts.between(path[k], path[k + 1]).mean());
}

TEST(FastPalette, ComesCloseToTheOptimumOnManyWeights) {
  std::vector<double> weights = draw(16 * 4096, gaussian);
  const ValueCounts plain = counts_of(weights);
  EXPECT_LT(squared_error(plain, fast_palette(plain, 40)),
            1.05 * squared_error(plain, optimal_palette(plain)));
  for (std::size_t i = 0; i < weights.size(); i += 4096) weights[i] *= 6;
  const ValueCounts with_outliers = counts_of(weights);
  EXPECT_LT(squared_error(with_outliers, fast_palette(with_outliers, 40)),
            1.15 * squared_error(with_outliers, optimal_palette(with_outliers)));
}

// By density^(1/3) alone a third of the entries would go into the gap before it.
TEST(FastPalette, SpendsFewEntriesOnALoneOutlier) {
  std::vector<double> weights = draw(4096, gaussian);
  weights[0] = 1000.0;
  const PaletteValues palette = fast_palette(counts_of(weights), 0);
  EXPECT_LE(std::ranges::count_if(palette, [](double entry) { return entry > 1.0; }), 4);
}

}  // namespace
}  // namespace clefkit
