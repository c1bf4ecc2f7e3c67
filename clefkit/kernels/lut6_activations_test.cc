#include "clefkit/kernels/lut6_activations.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

namespace clefkit {
namespace {

using Block = std::array<std::int16_t, kLut6Int16BlockColumns>;

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
    std::array<float, kLut6Int16BlockColumns> x;
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
  const Lut6Layout layout(kTokens, kColumns, kLut6Int16BlockColumns);
  ASSERT_EQ(layout.columns(), 320u);
  std::vector<std::int16_t> values(layout.value_count(), -1);
  std::vector<float> scales(layout.scale_count(), -1.0f);
  Executor executor(2);
  pack_activations({executor}, {x.data(), kTokens, kColumns}, layout, values.data(), scales.data());

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

}  // namespace
}  // namespace clefkit
