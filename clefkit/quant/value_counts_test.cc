#include "clefkit/quant/value_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

std::vector<BFloat16> as_bfloat16(const std::vector<float>& values) {
  std::vector<BFloat16> result;
  for (const float value : values) result.push_back(to_bfloat16(value));
  return result;
}

ValueCounts counts_of(const std::vector<float>& values) {
  const std::vector<BFloat16> weights = as_bfloat16(values);
  ValueCounts counts;
  WeightCounter().count({weights.data(), 1, weights.size()}, "w", 0, counts);
  return counts;
}

TEST(WeightCounter, SortsAndCountsDistinctValues) {
  const ValueCounts counts = counts_of({0.5f, -3.0f, 0.5f, 2.0f, -65280.0f, 0.5f, -3.0f, 65280.0f});
  ASSERT_EQ(counts.size(), 5);
  const std::vector<double> values{-65280, -3, 0.5, 2, 65280};
  const std::vector<double> numbers{1, 2, 3, 1, 1};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(counts.value(i), values[i]);
    EXPECT_EQ(counts.count(i), numbers[i]);
  }
  EXPECT_EQ(counts.weight_count(), 8);
}

TEST(WeightCounter, CountsMinusZeroAsZero) {
  const ValueCounts counts = counts_of({-0.0f, 0.0f, -0.0f, 0x1p-133f, -0x1p-133f});
  ASSERT_EQ(counts.size(), 3);
  EXPECT_EQ(counts.value(1), 0.0);
  EXPECT_EQ(counts.count(1), 3);
  EXPECT_EQ(counts.value(2), 0x1p-133);
}

TEST(WeightCounter, ReadsRowsByTheirStride) {
  const std::vector<BFloat16> weights = as_bfloat16({1, 2, 9, 3, 4, 9});
  ValueCounts counts;
  WeightCounter().count({weights.data(), 2, 2, 3}, "w", 0, counts);
  EXPECT_EQ(counts.weight_count(), 4);
  EXPECT_EQ(counts.largest(), 4);
}

TEST(WeightCounter, NamesAWeightThatFp16CannotHold) {
  for (const float bad : {65536.0f, -65536.0f, 3e38f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<BFloat16> weights = as_bfloat16({1, 2, 3, 4, 5, bad});
    WeightCounter counter;
    ValueCounts counts;
    try {
      counter.count({weights.data(), 2, 3}, "layers.0.mlp", 32, counts);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
      EXPECT_EQ(error.where(), "layers.0.mlp");
      EXPECT_THAT(error.message(), testing::HasSubstr("weight [33, 2]"));
    }
    // The next group starts from a clean table.
    const std::vector<BFloat16> good = as_bfloat16({1, 2});
    counter.count({good.data(), 1, 2}, "", 0, counts);
    EXPECT_EQ(counts.weight_count(), 2);
  }
}

TEST(ValueCounts, SumsRunsOfValues) {
  const ValueCounts counts = counts_of({-2, -2, -1, 0, 1, 3, 3, 3});
  const ValueCounts::Sums all = counts.between(0, counts.size());
  EXPECT_EQ(all.count, 8);
  EXPECT_EQ(all.sum, 5);
  EXPECT_EQ(all.square_sum, 37);
  const ValueCounts::Sums across_zero = counts.between(1, 4);  // −1, 0, 1.
  EXPECT_EQ(across_zero.count, 3);
  EXPECT_EQ(across_zero.sum, 0);
  EXPECT_EQ(across_zero.square_sum, 2);
  EXPECT_EQ(across_zero.squared_error(), 2);
  EXPECT_EQ(across_zero.squared_error(1.0), 5);
}

TEST(ValueCounts, KeepsTheSumsOfSmallValuesExactBesideAnOutlier) {
  // Added to 65280² = 4e9 the small squares of 1e-10 would vanish.
  const ValueCounts counts = counts_of({-65280, 0x1p-17f, 0x1p-16f, 65280});
  const ValueCounts::Sums small = counts.between(1, 3);
  EXPECT_EQ(small.sum, 0x1p-17 + 0x1p-16);
  EXPECT_EQ(small.square_sum, 0x1p-34 + 0x1p-32);
}

}  // namespace
}  // namespace clefkit
