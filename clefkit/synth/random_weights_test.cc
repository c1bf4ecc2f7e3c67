#include "clefkit/synth/random_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace clefkit {
namespace {

constexpr Distribution kStandardNormal{Distribution::Kind::kNormal, 0, 1};

std::vector<BFloat16> block(std::uint64_t seed, std::string_view name, std::uint64_t index,
                            std::size_t count) {
  std::vector<BFloat16> values(count);
  fill_block(QuantileTable(kStandardNormal), seed, name, index, values);
  return values;
}

double mean_of(const std::vector<BFloat16>& values, auto function) {
  double sum = 0;
  for (const BFloat16 value : values) sum += function(static_cast<double>(to_float(value)));
  return sum / static_cast<double>(values.size());
}

// Tabulated quantiles; a BF16 has 8 bits of precision.
TEST(QuantileTable, HoldsTheNormalQuantiles) {
  const QuantileTable table({Distribution::Kind::kNormal, 1, 2});
  const auto at = [&](double p) {
    return to_float(table[static_cast<std::uint16_t>(p * QuantileTable::kSize)]);
  };
  EXPECT_NEAR(at(0.5), 1.0, 0.01);
  EXPECT_NEAR(at(0.841345), 3.0, 0.02);
  EXPECT_NEAR(at(0.975), 1 + 2 * 1.959964, 0.02);
  EXPECT_NEAR(at(0.01), 1 - 2 * 2.326348, 0.02);
  EXPECT_NEAR(at(0.99999), 1 + 2 * 4.2649, 0.2);
}

TEST(QuantileTable, KeepsDecayAndTimeStepInTheirRanges) {
  const QuantileTable decay({Distribution::Kind::kLogUniformDecay, 0, 0});
  EXPECT_NEAR(std::exp(to_float(decay[0])), 1, 0.01);
  EXPECT_NEAR(std::exp(to_float(decay[65535])), 16, 0.2);
  const QuantileTable step({Distribution::Kind::kTimeStep, 0, 0});
  const auto softplus = [](float value) { return std::log1p(std::exp(value)); };
  EXPECT_NEAR(softplus(to_float(step[0])), 0.001, 0.00003);
  EXPECT_NEAR(softplus(to_float(step[32768])), 0.01, 0.0003);
  EXPECT_NEAR(softplus(to_float(step[65535])), 0.1, 0.003);
}

TEST(FillBlock, HasTheMomentsOfItsDistribution) {
  const auto values = block(1, "a", 0, 1 << 18);
  EXPECT_NEAR(mean_of(values, [](double v) { return v; }), 0, 0.01);
  EXPECT_NEAR(mean_of(values, [](double v) { return v * v; }), 1, 0.01);
  EXPECT_NEAR(mean_of(values, [](double v) { return v * v * v * v; }), 3, 0.05);
  // Neighbours, which share a random number, are independent.
  double product = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    product += static_cast<double>(to_float(values[i - 1])) * to_float(values[i]);
  }
  EXPECT_NEAR(product / static_cast<double>(values.size()), 0, 0.01);
}

TEST(FillBlock, DependsOnSeedNameAndBlock) {
  const auto values = block(1, "a", 0, 64);
  EXPECT_EQ(block(1, "a", 0, 64), values);
  EXPECT_NE(block(2, "a", 0, 64), values);
  EXPECT_NE(block(1, "b", 0, 64), values);
  EXPECT_NE(block(1, "a", 1, 64), values);
}

TEST(FillBlock, OddLengthsAreAPrefix) {
  const auto values = block(1, "a", 0, 16);
  for (std::size_t count : {0, 1, 2, 3, 5, 7, 15}) {
    const auto shorter = block(1, "a", 0, count);
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), values.begin())) << count;
  }
}

}  // namespace
}  // namespace clefkit
