#include "clefkit/kernels/lut6_activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

namespace clefkit {
namespace {

using Block = std::array<std::int16_t, kLut6BlockColumns<std::int16_t>>;
using Int8Block = std::array<std::int8_t, kLut6BlockColumns<std::int8_t>>;

TEST(QuantizeInt16Block, SpendsAllBitsOnASingleValue) {
  Block out;
  const std::array<float, 3> x{0.0f, -4.0f, 0.0f};
  const float scale = quantize_block(x, out);
  EXPECT_EQ(out[1], -32767);
  EXPECT_FLOAT_EQ(scale, 4.0f / 32767.0f);
  out[1] = 0;
  EXPECT_EQ(out, Block{});
}

TEST(QuantizeInt16Block, NeverLetsASumLeaveInt32) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 2000; ++round) {
    std::array<float, kLut6BlockColumns<std::int16_t>> x;
    for (float& value : x) {
      value = round % 3 == 0 ? 1.0f : normal(random);
      if (round % 3 == 2 && random() % 16 == 0) value *= 50.0f;
    }
    Block out;
    const float scale = quantize_block(x, out);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += std::abs(out[i]);
      ASSERT_NEAR(static_cast<float>(out[i]) * scale, x[i], 0.51f * scale);
    }
    ASSERT_LE(sum * 32767, std::numeric_limits<std::int32_t>::max());
    ASSERT_GE(sum, 32767);  // All the same, most of the range is used.
  }
}

TEST(QuantizeInt16Block, KeepsZerosAndTreatsTheTiniestAsZero) {
  Block out;
  EXPECT_EQ(quantize_block(std::array<float, 2>{0.0f, -0.0f}, out), 0.0f);
  EXPECT_EQ(out, Block{});
  EXPECT_EQ(quantize_block(std::array<float, 2>{1e-40f, 0.0f}, out), 0.0f);
  EXPECT_EQ(out, Block{});
}

TEST(QuantizeInt16Block, MarksABlockWithAnInfinityOrANan) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Block out;
    EXPECT_TRUE(std::isnan(quantize_block(std::array<float, 3>{1.0f, bad, 2.0f}, out)));
    EXPECT_EQ(out, Block{});
  }
}

TEST(QuantizeInt8Block, KeepsSumsOfFourWithinWhatInt16HoldsTimes255) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 5000; ++round) {
    std::array<float, kLut6BlockColumns<std::int8_t>> x;
    for (float& value : x) {
      value = round % 3 == 0 ? -1.0f : normal(random);
      if (round % 3 == 2 && random() % 16 == 0) value *= 50.0f;
    }
    Int8Block out;
    const float scale = quantize_block(x, out);
    int largest = 0;
    for (std::size_t i = 0; i < x.size(); i += 8) {
      for (const std::size_t j : {i, i + 2}) {
        int positive = 0, negative = 0;
        for (const std::size_t k : {j, j + 1, j + 4, j + 5}) {
          positive += std::max<int>(out[k], 0);
          negative -= std::min<int>(out[k], 0);
          ASSERT_GE(out[k], -127);
          ASSERT_NEAR(static_cast<float>(out[k]) * scale, x[k], 0.51f * scale);
        }
        largest = std::max({largest, positive, negative});
      }
    }
    ASSERT_LE(largest * 255, 32767);
    ASSERT_GE(largest, 124);  // No more is given away than roundings may need.
  }
}

TEST(QuantizeInt8Block, SpendsAllBitsOnASingleValue) {
  Int8Block out;
  const float scale = quantize_block(std::array<float, 3>{0.0f, 0.0f, -2.54f}, out);
  EXPECT_EQ(out[2], -127);
  EXPECT_NEAR(scale, 0.02f, 1e-5f);
}

TEST(QuantizeInt8Block, MarksABlockWithANan) {
  Int8Block out;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(quantize_block(std::array<float, 2>{1.0f, nan}, out)));
  EXPECT_EQ(out, Int8Block{});
}

TEST(Lut6Layout, CoversEachTokenOnceWithEvenTiles) {
  for (std::size_t tokens = 1; tokens <= 520; ++tokens) {
    const Lut6Layout layout(tokens, 64, 64);
    std::size_t next = 0;
    for (std::size_t tile = 0; tile < layout.tile_count(); ++tile) {
      ASSERT_EQ(layout.first_token(tile), next);
      ASSERT_GE(layout.tile_tokens(tile), tokens / layout.tile_count());
      ASSERT_LE(layout.tile_tokens(tile), kLut6TileTokens);
      next += layout.tile_tokens(tile);
    }
    ASSERT_EQ(next, tokens);
  }
}

TEST(PackActivations, PutsPairsOfColumnsOfATilesTokensSideBySide) {
  // 8 tokens are two tiles of 4; 260 columns are a panel of 256 and a block with 4 columns.
  constexpr std::size_t kTokens = 8, kColumns = 260;
  std::vector<float> x(kTokens * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 61) - 30.0f;
  const Lut6Layout layout(kTokens, kColumns, kLut6BlockColumns<std::int16_t>);
  ASSERT_EQ(layout.columns(), 320u);
  std::vector<std::int16_t> values(layout.value_count(), -1);
  std::vector<float> scales(layout.scale_count(), -1.0f);
  Executor executor(2);
  pack_activations<std::int16_t>({executor}, {x.data(), kTokens, kColumns},
                                 {layout, values.data(), scales.data(), nullptr});

  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t column = 0; column < 320; ++column) {
      const std::size_t tile = token / 4, panel = column / 256, block = column % 256 / 64;
      const std::size_t panel_start = panel * 256 * kTokens;
      const std::size_t tile_start = panel_start + tile * (panel == 0 ? 256 : 64) * 4;
      const float scale = scales[tile_start / 64 + block * 4 + token % 4];
      const float value =
          values[tile_start + (column % 256 / 2 * 4 + token % 4) * 2 + column % 2] * scale;
      ASSERT_NEAR(value, column < kColumns ? x[token * kColumns + column] : 0.0f, scale);
    }
  }
}

TEST(PackActivations, GivesInt8BlocksTheOffsetOfUnsignedWeights) {
  constexpr std::size_t kTokens = 3, kColumns = 40;  // A whole block, and one with 8 columns.
  std::vector<float> x(kTokens * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 2.0f;
  const Lut6Layout layout(kTokens, kColumns, kLut6BlockColumns<std::int8_t>);
  std::vector<std::int8_t> values(layout.value_count());
  std::vector<float> scales(layout.scale_count());
  std::vector<std::int32_t> offsets(layout.scale_count());
  Executor executor(1);
  pack_activations<std::int8_t>({executor}, {x.data(), kTokens, kColumns},
                                {layout, values.data(), scales.data(), offsets.data()});
  for (std::size_t block = 0; block < 2; ++block) {
    for (std::size_t token = 0; token < kTokens; ++token) {
      const std::size_t place = block * kTokens + token;
      int sum = 0;
      for (std::size_t k = 0; k < 32; ++k) {
        const int value = values[block * 32 * kTokens + (k / 4 * kTokens + token) * 4 + k % 4];
        const std::size_t column = block * 32 + k;
        ASSERT_NEAR(static_cast<float>(value) * scales[place],
                    column < kColumns ? x[token * kColumns + column] : 0.0f, scales[place]);
        sum += value;
      }
      EXPECT_EQ(offsets[place], -128 * sum);
    }
  }
}

}  // namespace
}  // namespace clefkit
