#include "clefkit/programs/mlp_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "clefkit/base/error.h"
#include "clefkit/mil/parser.h"
#include "clefkit/mil/printer.h"
#include "clefkit/mil/simulator.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

constexpr std::size_t kHidden = 64, kInner = 160, kTokens = 12;
const std::string kPrefix = "model.language_model.layers.3.";

struct MlpTest : testing::Test {
  // The size of the weights before the activation, and of x.
  explicit MlpTest(float projections = 0.4f, float size = 3.0f) {
    config.hidden_size = kHidden;
    config.intermediate_size = kInner;
    config.rms_norm_eps = 1e-6f;
    TestNumbers numbers(7);
    weights.add_fp16(kPrefix + "post_attention_layernorm.weight", {kHidden},
                     numbers.vector(kHidden, 0.5f));
    weights.add_lut6(kPrefix + "mlp.gate_proj.weight", kInner, kHidden, projections, numbers);
    weights.add_lut6(kPrefix + "mlp.up_proj.weight", kInner, kHidden, projections, numbers);
    weights.add_fp16(kPrefix + "mlp.down_proj.weight", {kHidden, kInner},
                     numbers.vector(kHidden * kInner, 0.2f));
    weights.finish();
    x.values = numbers.vector(kHidden * kTokens, size);
  }

  mil::Program program(double scale, const Spellings& spellings = {}) const {
    ProgramBuilder builder(TestWeights::kPath, spellings);
    const auto input = builder.input("x", x.shape);
    builder.output(
        emit_mlp(
            builder, input, config, 3,
            [&](const std::string& name) -> const BlobWeight& { return weights[name]; }, scale),
        "y");
    return std::move(builder).finish();
  }

  // x + down(silu(gate(h)) · up(h)), in double.
  std::vector<double> expected() const {
    const auto& norm = weights.values(kPrefix + "post_attention_layernorm.weight");
    const auto& gate = weights.values(kPrefix + "mlp.gate_proj.weight");
    const auto& up = weights.values(kPrefix + "mlp.up_proj.weight");
    const auto& down = weights.values(kPrefix + "mlp.down_proj.weight");
    std::vector<double> y(x.values.begin(), x.values.end());
    for (std::size_t token = 0; token < kTokens; ++token) {
      double squares = 0;
      for (std::size_t c = 0; c < kHidden; ++c)
        squares += std::pow(x.values[c * kTokens + token], 2);
      std::vector<double> h(kHidden), inner(kInner);
      for (std::size_t c = 0; c < kHidden; ++c) {
        h[c] = x.values[c * kTokens + token] / std::sqrt(squares / kHidden + 1e-6) * (1 + norm[c]);
      }
      for (std::size_t i = 0; i < kInner; ++i) {
        double gated = 0, upped = 0;
        for (std::size_t c = 0; c < kHidden; ++c) {
          gated += gate[i * kHidden + c] * h[c];
          upped += up[i * kHidden + c] * h[c];
        }
        inner[i] = gated / (1 + std::exp(-gated)) * upped;
      }
      for (std::size_t c = 0; c < kHidden; ++c) {
        for (std::size_t i = 0; i < kInner; ++i) {
          y[c * kTokens + token] += down[c * kInner + i] * inner[i];
        }
      }
    }
    return y;
  }

  double largest_error(const mil::Program& of, mil::NumericProfile profile) const {
    const auto y = mil::Simulator(of, weights.files(), profile).run({{"x", x}}).at("y").values;
    const auto formula = expected();
    double error = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      error = std::max(error, std::abs(y[i] - formula[i]));
    }
    return error;
  }

  TextConfig config;
  TestWeights weights;
  mil::Tensor x{{1, kHidden, 1, kTokens}, {}};
};

TEST_F(MlpTest, HoldsForTheCheckerAndAsText) {
  for (const double scale : {1.0, 16.0}) {
    const mil::Program made = program(scale);
    EXPECT_THAT(mil::check_program(made, weights.files()), testing::IsEmpty());
    const std::string text = mil::to_text(made);
    EXPECT_EQ(mil::to_text(mil::parse_program(text, "mlp")), text);
    EXPECT_EQ(mil::to_text(program(scale)), text);
  }
}

TEST_F(MlpTest, IsTheFormulaOnEveryMachine) {
  using mil::NumericProfile;
  // The values are of a size of 10, so FP16 rounds by 0.004.
  for (const double scale : {1.0, 4.0}) {
    const mil::Program made = program(scale);
    EXPECT_LT(largest_error(made, NumericProfile::kIdeal), 0.03);
    EXPECT_LT(largest_error(made, NumericProfile::kStrict), 0.03);
    EXPECT_LT(largest_error(made, NumericProfile::kM5), 0.03);
    EXPECT_LT(largest_error(made, NumericProfile::kH15g), 0.06);
  }
}

TEST_F(MlpTest, SaysWhatItWasScaledBy) {
  for (const double scale : {1.0, 2.0, 16.0}) {
    const mil::Program read = mil::parse_program(mil::to_text(program(scale)), "mlp");
    EXPECT_EQ(mlp_factor_of(read.functions[0], 3), scale);
    EXPECT_EQ(mlp_factor_of(read.functions[0], 4), 1);  // There is none.
  }
}

TEST_F(MlpTest, NoticesAScaleThatIsNotTakenBack) {
  std::string text = mil::to_text(program(16));
  const std::size_t at = text.find("(0x1p-4)");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 8, "(0x1p-3)");
  EXPECT_THROW(mlp_factor_of(mil::parse_program(text, "mlp").functions[0], 3), Error);
}

// Products of a size of 1e-5, which are subnormal.
struct SmallMlpTest : MlpTest {
  SmallMlpTest() : MlpTest(0.004f, 0.001f) {}
};

// What the factor is there for: a machine that rounds each product, and makes subnormal ones 0.
TEST_F(SmallMlpTest, AFactorKeepsSmallProducts) {
  const auto profile = mil::NumericProfile::kH15g;
  EXPECT_LT(largest_error(program(16), profile), largest_error(program(1), profile) / 3);
}

TEST(MlpFactor, IsTheLargestThatLeavesEightTimesUpTo32768) {
  EXPECT_EQ(choose_mlp_factor(1, 1), 16u);
  EXPECT_EQ(choose_mlp_factor(1, 256), 16u);  // 16 · 256 · 8 = 2^15
  EXPECT_EQ(choose_mlp_factor(1, 256.001), 8u);
  EXPECT_EQ(choose_mlp_factor(512, 1), 8u);
  EXPECT_EQ(choose_mlp_factor(512, 1024), 4u);
  EXPECT_EQ(choose_mlp_factor(2048, 4), 2u);
  EXPECT_EQ(choose_mlp_factor(2049, 4), 1u);
  EXPECT_EQ(choose_mlp_factor(1e6, 1e9), 1u);
  EXPECT_EQ(choose_mlp_factor(1e-30, 1e-30), 16u);
}

TEST(MlpFactor, IsOneWithoutAMeasurement) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double none : {0.0, -1.0, infinity, nan}) {
    EXPECT_EQ(choose_mlp_factor(none, 1), 1u) << none;
    EXPECT_EQ(choose_mlp_factor(1, none), 1u) << none;
    EXPECT_EQ(choose_mlp_factor(none, none), 1u) << none;
  }
}

// Why silu is spelled out: by the tables of an M1 either spelling is off, the unit's own by more.
TEST_F(MlpTest, ASpelledOutSiluIsNearerThanATable) {
  using mil::NumericProfile;
  const double spelled = largest_error(program(1), NumericProfile::kM1);
  const double table = largest_error(program(1, {.silu = true}), NumericProfile::kM1);
  EXPECT_LT(spelled, table);
  EXPECT_LT(largest_error(program(1, {.reduce_mean = true, .silu = true}), NumericProfile::kIdeal),
            0.03);
}

}  // namespace
}  // namespace clefkit
