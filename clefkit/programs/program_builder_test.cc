#include "clefkit/programs/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "clefkit/base/error.h"
#include "clefkit/mil/checker.h"
#include "clefkit/mil/printer.h"
#include "clefkit/mil/simulator.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

using ::testing::HasSubstr;

TEST(ProgramBuilder, NamesResultsApartAndConstantsOnce) {
  ProgramBuilder builder(TestWeights::kPath);
  const auto x = builder.input("x", {1, 4, 1, 8});
  const auto first = builder.binary("mul", x, builder.scalar(0.5, "half"), "y");
  const auto second = builder.binary("add", first, builder.scalar(0.5, "other"), "y");
  EXPECT_EQ(first, "y");
  EXPECT_EQ(second, "y_1");
  builder.output(second, "out");
  const mil::Program program = std::move(builder).finish();
  EXPECT_EQ(program.functions[0].statements.size(), 3u);
  EXPECT_THAT(mil::check_program(program, {}), testing::IsEmpty());
  EXPECT_THAT(mil::to_text(program), HasSubstr("fp16 half = const()[name = string(\"half\"), val = "
                                               "fp16(0x1p-1)];"));
}

TEST(ProgramBuilder, WritesAPalettizedWeightAsTheSpecificationDoes) {
  TestWeights weights;
  TestNumbers numbers(1);
  weights.add_lut6("model.language_model.layers.0.mlp.up_proj.weight", 32, 4, 1, numbers);
  weights.finish();
  ProgramBuilder builder(TestWeights::kPath);
  const auto x = builder.input("x", {1, 4, 1, 32});
  const BlobWeight& weight = weights["model.language_model.layers.0.mlp.up_proj.weight"];
  builder.output(builder.linear(x, weight, "up"), "y");
  const mil::Program program = std::move(builder).finish();
  EXPECT_THAT(mil::check_program(program, weights.files()), testing::IsEmpty());
  EXPECT_THAT(
      mil::to_text(program),
      HasSubstr(
          "tensor<fp16, [32, 4, 1, 1]> layers_0_mlp_up_proj = constexpr_lut_to_dense(indices = "
          "tensor<uint6, [32, 4, 1, 1]>(BLOBFILE(path = string(\"@model_path/weights/"
          "test.bin\"), offset = uint64(64))), lut = tensor<fp16, [2, 1, 1, 1, 64, "
          "1]>(BLOBFILE(path = string(\"@model_path/weights/test.bin\"), offset = "
          "uint64(256))))[name = string(\"layers_0_mlp_up_proj\")];"));
}

TEST(ProgramBuilder, RefusesWhatMakesNoSense) {
  ProgramBuilder builder(TestWeights::kPath);
  const auto x = builder.input("x", {1, 4, 1, 8});
  EXPECT_THROW(builder.input("x", {1, 4, 1, 8}), Error);
  EXPECT_THROW(builder.unary("gather", x, "y"), Error);
  EXPECT_THROW(builder.add("transpose", {{"x", x}}, "y"), Error);
  EXPECT_THROW(builder.binary("add", x, std::string("z"), "y"), Error);
  EXPECT_THROW(builder.output("z", "y"), Error);
  const BlobWeight weight{"w", "", BlobWeight::Kind::kFp16, {3, 5}, 64, 0};
  EXPECT_THROW(builder.weight(weight, {4, 4, 1, 1}), Error);
}

// From where it is nothing to where it is x; and for the largest numbers without an infinity.
TEST(ProgramBuilder, SpellsAGeluThatIsTheFormula) {
  std::vector<float> values{65504, 1000, 20, -20, -1000, -65504, 0};
  for (int i = -1000; i <= 1000; ++i) {
    values.push_back(to_float(to_half(0.01f * static_cast<float>(i))));
  }
  ProgramBuilder builder(TestWeights::kPath);
  const auto x = builder.input("x", {1, 1, 1, static_cast<std::int64_t>(values.size())});
  builder.output(builder.gelu_tanh(x, "gelu"), "y");
  const mil::Program program = std::move(builder).finish();
  EXPECT_THAT(mil::check_program(program, {}), testing::IsEmpty());
  for (const auto profile : {mil::NumericProfile::kStrict, mil::NumericProfile::kM1,
                             mil::NumericProfile::kH15g, mil::NumericProfile::kM5}) {
    const mil::Tensor input{{1, 1, 1, static_cast<std::int64_t>(values.size())}, values};
    const auto y = mil::Simulator(program, {}, profile).run({{"x", input}}).at("y").values;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double v = values[i];
      const double u = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
      const double expected = 0.5 * v * (1 + std::tanh(u));
      EXPECT_NEAR(y[i], expected, 1.5e-3 * std::abs(expected) + 7.5e-5) << v;
    }
  }
}

}  // namespace
}  // namespace clefkit
