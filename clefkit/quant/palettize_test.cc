#include "clefkit/quant/palettize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

constexpr std::array kMethods{PaletteMethod::kOptimal, PaletteMethod::kOriginal,
                              PaletteMethod::kFast, PaletteMethod::kGrid8};

std::vector<BFloat16> random_weights(std::size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<BFloat16> weights(count);
  for (BFloat16& weight : weights) weight = to_bfloat16(normal(random));
  return weights;
}

TEST(PaletteMethod, HasItsNameBothWays) {
  for (const auto method : kMethods) EXPECT_EQ(parse_palette_method(to_string(method)), method);
  EXPECT_EQ(parse_palette_method("kmeans"), std::nullopt);
}

TEST(PalettizeMatrix, StoresTheNearestEntryOfEveryWeight) {
  constexpr std::size_t kRows = 48;
  constexpr std::size_t kColumns = 36;
  const std::vector<BFloat16> weights = random_weights(kRows * kColumns);
  Executor executor(2);
  for (const auto method : kMethods) {
    const PalettizedMatrix matrix =
        palettize_matrix({executor}, {weights.data(), kRows, kColumns}, {.method = method}, "w");

    double squared_error = 0.0;
    double square_sum = 0.0;
    double max_abs_error = 0.0;
    const Lut6Matrix view = matrix.view();
    std::vector<float> row(kColumns);
    for (std::size_t i = 0; i < kRows; ++i) {
      view.dequantize_row(i, row);
      for (std::size_t j = 0; j < kColumns; ++j) {
        const double weight = static_cast<double>(to_float(weights[i * kColumns + j]));
        double nearest = 1e9;
        for (const Half entry : view.palette_of_row(i))
          nearest = std::min(nearest, std::fabs(weight - static_cast<double>(to_float(entry))));
        const double error = std::fabs(weight - static_cast<double>(row[j]));
        ASSERT_EQ(error, nearest) << i << ", " << j;
        squared_error += error * error;
        square_sum += weight * weight;
        max_abs_error = std::max(max_abs_error, error);
      }
    }
    EXPECT_NEAR(matrix.relative_rmse, std::sqrt(squared_error / square_sum), 1e-12);
    EXPECT_EQ(matrix.max_abs_error, max_abs_error);
    EXPECT_EQ(matrix.grid_scales.size(), method == PaletteMethod::kGrid8 ? 3 : 0);
  }
}

TEST(PalettizeMatrix, GivesTheSameBitsForEveryNumberOfThreads) {
  constexpr std::size_t kRows = 16 * 9;
  constexpr std::size_t kColumns = 260;
  const std::vector<BFloat16> weights = random_weights(kRows * kColumns);
  for (const auto method : kMethods) {
    std::vector<PalettizedMatrix> results;
    for (const std::size_t threads : {1, 2, 3}) {
      Executor executor(threads);
      results.push_back(
          palettize_matrix({executor}, {weights.data(), kRows, kColumns}, {.method = method}, "w"));
    }
    for (const PalettizedMatrix& result : results) {
      EXPECT_EQ(result.packed_indices, results[0].packed_indices);
      EXPECT_EQ(result.palettes, results[0].palettes);
      EXPECT_EQ(result.grid_scales, results[0].grid_scales);
      EXPECT_EQ(result.relative_rmse, results[0].relative_rmse);
    }
  }
}

TEST(PalettizeMatrix, ReadsRowsByTheirStride) {
  const std::vector<BFloat16> weights = random_weights(16 * 100);
  std::vector<BFloat16> apart(16 * 111);
  for (std::size_t row = 0; row < 16; ++row)
    std::copy_n(weights.begin() + row * 100, 100, apart.begin() + row * 111);
  Executor executor(1);
  EXPECT_EQ(palettize_matrix({executor}, {apart.data(), 16, 100, 111}, {}, "w").packed_indices,
            palettize_matrix({executor}, {weights.data(), 16, 100}, {}, "w").packed_indices);
}

TEST(PalettizeMatrix, RecordsTheScaleOfGroupsOnAGridAndZeroForOthers) {
  std::vector<BFloat16> weights = random_weights(32 * 64);
  std::fill_n(weights.begin(), 16 * 64, BFloat16{});
  Executor executor(1);
  const PalettizedMatrix matrix = palettize_matrix({executor}, {weights.data(), 32, 64},
                                                   {.method = PaletteMethod::kGrid8}, "w");
  EXPECT_EQ(matrix.grid_scales[0], 0.0f);
  const float scale = matrix.grid_scales[1];
  ASSERT_GT(scale, 0.0f);
  for (const Half entry : matrix.view().palette_of_row(16)) {
    const float steps = to_float(entry) / scale;
    EXPECT_EQ(steps, std::nearbyint(steps));
    EXPECT_LE(std::fabs(steps), 127.0f);
  }
}

TEST(PalettizeMatrix, GivesZerosNoError) {
  const std::vector<BFloat16> weights(16 * 4, BFloat16{0x8000});
  Executor executor(1);
  for (const auto method : kMethods) {
    const PalettizedMatrix matrix =
        palettize_matrix({executor}, {weights.data(), 16, 4}, {.method = method}, "w");
    EXPECT_EQ(matrix.relative_rmse, 0.0);
    EXPECT_EQ(matrix.max_abs_error, 0.0);
    EXPECT_EQ(matrix.packed_indices, std::vector<std::uint8_t>(48));
  }
}

// Of several equal FP16 entries the first is the nearest.
TEST(PalettizeMatrix, TakesTheLowestOfEqualEntries) {
  std::vector<BFloat16> weights;
  for (int i = 0; i < 64; ++i) weights.push_back({static_cast<std::uint16_t>(0x3300 + i)});
  Executor executor(1);
  const PalettizedMatrix matrix = palettize_matrix({executor}, {weights.data(), 16, 4}, {}, "w");
  // 64 distinct values around 3e-8, half of FP16's smallest: the table is 0 … 0, 2^-24 … 2^-24.
  std::vector<float> row(4);
  for (const Half entry : matrix.palettes) EXPECT_LE(entry.bits, 1);
  const auto first_one = static_cast<std::uint8_t>(std::ranges::count(matrix.palettes, Half{0}));
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint8_t first_index = matrix.packed_indices[i * 3] & 63;
    EXPECT_TRUE(first_index == 0 || first_index == first_one);
  }
}

TEST(PalettizeMatrix, RejectsShapesThatDoNotFit) {
  const std::vector<BFloat16> weights(32 * 8);
  Executor executor(1);
  for (const auto& [rows, columns] : {std::pair{8, 8}, {17, 8}, {16, 6}, {0, 8}, {16, 0}}) {
    const MatrixView<const BFloat16> view(weights.data(), rows, columns);
    EXPECT_THROW(palettize_matrix({executor}, view, {}, "w"), Error) << rows << "x" << columns;
  }
}

TEST(PalettizeMatrix, NamesTensorAndPlaceOfAWeightBeyondFp16) {
  std::vector<BFloat16> weights = random_weights(48 * 8);
  weights[35 * 8 + 3] = to_bfloat16(70000.0f);
  Executor executor(2);
  try {
    palettize_matrix({executor}, {weights.data(), 48, 8}, {}, "layers.3.mlp.up_proj.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    EXPECT_STREQ(error.what(),
                 "layers.3.mlp.up_proj.weight: weight [35, 3] is 70144, expected within ±65504");
  }
}

TEST(PalettizeMatrix, StopsWhenCancelled) {
  const std::vector<BFloat16> weights = random_weights(32 * 8);
  Executor executor(1);
  CancelToken token;
  token.cancel();
  EXPECT_THROW(palettize_matrix({executor, &token}, {weights.data(), 32, 8}, {}, "w"), Error);
}

}  // namespace
}  // namespace clefkit
