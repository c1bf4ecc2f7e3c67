#include "clefkit/programs/layer_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "clefkit/mil/simulator.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

using mil::NumericProfile;

constexpr std::size_t kChannels = 96, kTokens = 8;
constexpr double kEpsilon = 1e-6;

struct LayerNormTest : testing::Test {
  LayerNormTest() {
    TestNumbers numbers(1);
    weights.add_fp16("norm.weight", {kChannels}, numbers.vector(kChannels, 1.5f));
    weights.add_fp16("norm.bias", {kChannels}, numbers.vector(kChannels, 0.5f));
    weights.finish();
  }

  mil::Program program(const Spellings& spellings) const {
    ProgramBuilder builder(TestWeights::kPath, spellings);
    const auto x = builder.input("x", {1, kChannels, 1, kTokens});
    builder.output(
        emit_layer_norm(builder, x, weights["norm.weight"], weights["norm.bias"], kEpsilon, "norm"),
        "y");
    return std::move(builder).finish();
  }

  // The formula, in double.
  std::vector<double> expected(const std::vector<float>& x) const {
    std::vector<double> y(x.size());
    for (std::size_t token = 0; token < kTokens; ++token) {
      double mean = 0, variance = 0;
      for (std::size_t c = 0; c < kChannels; ++c)
        mean += x[c * kTokens + token] / double{kChannels};
      for (std::size_t c = 0; c < kChannels; ++c) {
        variance += std::pow(x[c * kTokens + token] - mean, 2) / kChannels;
      }
      for (std::size_t c = 0; c < kChannels; ++c) {
        y[c * kTokens + token] = (x[c * kTokens + token] - mean) / std::sqrt(variance + kEpsilon) *
                                     weights.values("norm.weight")[c] +
                                 weights.values("norm.bias")[c];
      }
    }
    return y;
  }

  TestWeights weights;
};

TEST_F(LayerNormTest, HoldsForTheChecker) {
  for (const bool reduce_mean : {false, true}) {
    EXPECT_THAT(mil::check_program(program({.reduce_mean = reduce_mean}), weights.files()),
                testing::IsEmpty());
  }
}

// From tokens that fill FP16 to such that are nearly nothing, with one channel far above the
// others, and with a mean as large as the spread.
TEST_F(LayerNormTest, IsTheFormulaWhateverTheSizeOfATokenIs) {
  for (const bool reduce_mean : {false, true}) {
    const mil::Program with_norm = program({.reduce_mean = reduce_mean});
    for (const NumericProfile profile :
         {NumericProfile::kIdeal, NumericProfile::kM1, NumericProfile::kH15g, NumericProfile::kM5,
          NumericProfile::kStrict}) {
      const mil::Simulator simulator(with_norm, weights.files(), profile);
      for (const float scale : {60000.0f, 1000.0f, 30.0f, 1.0f, 0.05f, 0x1p-8f}) {
        TestNumbers numbers(2);
        mil::Tensor x{{1, kChannels, 1, kTokens}, numbers.vector(kChannels * kTokens, scale)};
        for (std::size_t i = 0; i < x.values.size(); ++i) {
          const std::size_t token = i % kTokens;
          if (token < 3 && i >= kTokens) x.values[i] /= 16;
          if (token < 3 && i < kTokens) x.values[i] = scale;
          if (token >= 6) x.values[i] = x.values[i] / 3 + scale / 3;
          x.values[i] = to_float(to_half(x.values[i]));
        }
        const auto y = simulator.run({{"x", x}}).at("y").values;
        const auto formula = expected(x.values);
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_NEAR(y[i], formula[i], 3e-3 * std::abs(formula[i]) + 2e-3)
              << scale << " " << to_string(profile) << " " << i;
        }
      }
    }
  }
}

// A token of zeros, as padding is, becomes the bias.
TEST_F(LayerNormTest, MakesTheBiasOfNothing) {
  const mil::Program with_norm = program({});
  const mil::Tensor zeros = mil::zeros({1, kChannels, 1, kTokens});
  const mil::Simulator simulator(with_norm, weights.files(), NumericProfile::kStrict);
  const auto y = simulator.run({{"x", zeros}}).at("y").values;
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], weights.values("norm.bias")[i / kTokens]);
  }
}

}  // namespace
}  // namespace clefkit
