#include "clefkit/programs/rms_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "clefkit/mil/simulator.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

constexpr std::int64_t kChannels = 96, kTokens = 8;
constexpr double kEpsilon = 1e-6;

struct NormTest : testing::Test {
  NormTest() {
    TestNumbers numbers(1);
    weights.add_fp16("layers.0.norm.weight", {kChannels}, numbers.vector(kChannels, 0.5f));
    weights.finish();
  }

  mil::Program program(const Spellings& spellings) const {
    ProgramBuilder builder(TestWeights::kPath, spellings);
    const auto x = builder.input("x", {1, kChannels, 1, kTokens});
    builder.output(emit_rms_norm(builder, x, weights["layers.0.norm.weight"], kEpsilon, "norm"),
                   "y");
    return std::move(builder).finish();
  }

  // The formula, in double.
  std::vector<double> expected(const std::vector<float>& x) const {
    std::vector<double> y(x.size());
    for (std::size_t token = 0; token < kTokens; ++token) {
      double squares = 0;
      for (std::size_t c = 0; c < kChannels; ++c) {
        squares += std::pow(x[c * kTokens + token], 2);
      }
      const double root = std::sqrt(squares / kChannels + kEpsilon);
      for (std::size_t c = 0; c < kChannels; ++c) {
        y[c * kTokens + token] =
            x[c * kTokens + token] / root * (1 + weights.values("layers.0.norm.weight")[c]);
      }
    }
    return y;
  }

  TestWeights weights;
};

TEST_F(NormTest, HoldsForTheChecker) {
  for (const bool reduce_mean : {false, true}) {
    EXPECT_THAT(mil::check_program(program({.reduce_mean = reduce_mean}), weights.files()),
                testing::IsEmpty());
  }
}

// From tokens that fill FP16 to such that are nearly nothing, on every machine.
TEST_F(NormTest, IsTheFormulaWhateverTheSizeOfATokenIs) {
  using mil::NumericProfile;
  for (const bool reduce_mean : {false, true}) {
    const mil::Program with_norm = program({.reduce_mean = reduce_mean});
    for (const NumericProfile profile :
         {NumericProfile::kIdeal, NumericProfile::kM1, NumericProfile::kH15g, NumericProfile::kM5,
          NumericProfile::kStrict}) {
      const mil::Simulator simulator(with_norm, weights.files(), profile);
      for (const float scale : {60000.0f, 1000.0f, 30.0f, 1.0f, 0.05f, 0x1p-8f}) {
        TestNumbers numbers(2);
        mil::Tensor x{{1, kChannels, 1, kTokens}, numbers.vector(kChannels * kTokens, scale)};
        // One channel far above the others, as trained models have.
        for (std::size_t token = 0; token < kTokens / 2; ++token) x.values[token] = scale;
        for (std::size_t i = kTokens; i < x.values.size(); ++i) {
          if (i % kTokens < kTokens / 2) x.values[i] = to_float(to_half(x.values[i] / 16));
        }
        const auto y = simulator.run({{"x", x}}).at("y").values;
        const auto formula = expected(x.values);
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_NEAR(y[i], formula[i], 3e-3 * std::abs(formula[i]) + 1e-4)
              << scale << " " << to_string(profile) << " " << i;
        }
      }
    }
  }
}

TEST_F(NormTest, MakesNothingOfNothing) {
  const mil::Program with_norm = program({});
  const mil::Tensor zeros{{1, kChannels, 1, kTokens}, std::vector<float>(kChannels * kTokens)};
  const mil::Simulator simulator(with_norm, weights.files(), mil::NumericProfile::kStrict);
  EXPECT_EQ(simulator.run({{"x", zeros}}).at("y").values, zeros.values);
}

}  // namespace
}  // namespace clefkit
