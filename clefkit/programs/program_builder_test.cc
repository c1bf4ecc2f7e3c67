#include "clefkit/programs/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/base/error.h"
#include "clefkit/mil/checker.h"
#include "clefkit/mil/printer.h"
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

}  // namespace
}  // namespace clefkit
