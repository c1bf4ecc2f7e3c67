#include "clefkit/mil/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/mil/example_program.h"
#include "clefkit/mil/operations.h"
#include "clefkit/mil/parser.h"

namespace clefkit::mil {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckerTest : public testing::Test {
 protected:
  std::vector<std::string> problems(const std::string& text, const CheckLimits& limits = {}) {
    std::vector<std::string> found;
    for (const Problem& problem : check_program(parse_program(text, "test"), files_, limits)) {
      found.push_back(to_string(problem));
    }
    return found;
  }
  // Of the example with `from` replaced.
  std::vector<std::string> problems_with(const std::string& from, const std::string& to) {
    std::string text = kExampleText;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return problems(text.replace(at, from.size(), to));
  }
  // Of a program whose statements compute y from x, a tensor<fp16, [1, 8, 4, 6]>, and others.
  std::vector<std::string> problems_of(const std::string& statements) {
    return problems(
        "program(1.3)\n[buildInfo = dict<string, string>({{\"a\", \"b\"}})]\n{\n"
        "func main<ios18>(tensor<fp16, [1, 8, 4, 6]> x) {\n" +
        statements + "\n} -> (y);\n}\n");
  }

  const std::vector<std::uint8_t> file_ = example_weights();
  const WeightBlobReader reader_{file_, "weight.bin"};
  const WeightFiles files_{{kWeightPath, &reader_}};
};

TEST_F(CheckerTest, TakesTheSpecificationsExample) {
  EXPECT_THAT(problems(kExampleText), IsEmpty());
}

TEST_F(CheckerTest, FindsNamesThatAreMissingDoubleOrUnused) {
  EXPECT_THAT(problems_with("x = x)", "x = z)"),
              ElementsAre("11: y: conv: x: nothing before it is called z",
                          "x: an input that nothing uses"));
  EXPECT_THAT(problems_with("[2]> dl", "[2]> st"),
              Contains("9: st: a second definition of this name"));
  EXPECT_THAT(problems_with("dilations = dl", "dilations = st"),
              ElementsAre("9: dl: nothing uses it"));
  EXPECT_THAT(problems_with("-> (y)", "-> (y, z)"),
              ElementsAre("z: an output that nothing defines"));
  EXPECT_THAT(problems_with("-> (y)", "-> (y, y)"), ElementsAre("y: an output twice"));
  EXPECT_THAT(problems_with("-> (y)", "-> (y, w)"), ElementsAre("w: an output that is a constant"));
}

TEST_F(CheckerTest, FindsWrongArguments) {
  EXPECT_THAT(problems_with("groups = gr, ", ""),
              ElementsAre("11: y: conv: no argument groups", "10: gr: nothing uses it"));
  EXPECT_THAT(problems_with("strides = st", "steps = st"),
              Contains("11: y: conv: no argument is called steps"));
  EXPECT_THAT(problems_with("= conv(", "= convolve("),
              ElementsAre("11: y: convolve: no operation that is known here"));
  EXPECT_THAT(problems_with("pad = pd", "pad = st"),
              Contains("11: y: conv: pad: [1, 1], expected 4 values"));
  EXPECT_THAT(problems_with("strides = st", "strides = x"),
              Contains("11: y: conv: strides: a result, expected a constant"));
  EXPECT_THAT(problems_with("val = string(\"valid\")", "val = string(\"same\")"),
              ElementsAre("11: y: conv: pad_type: \"same\", expected \"valid\" or \"custom\""));
  EXPECT_THAT(problems_with("[name = string(\"y\")]", "[]"),
              ElementsAre("11: y: conv: no attribute name"));
}

TEST_F(CheckerTest, RecomputesTypes) {
  EXPECT_THAT(problems_with("[1, 32, 1, 32]> y", "[1, 32, 1, 31]> y"),
              ElementsAre("11: y: conv: declared as tensor<fp16, [1, 32, 1, 31]>, expected "
                          "tensor<fp16, [1, 32, 1, 32]>"));
  EXPECT_THAT(problems_with("val = tensor<int32, [2]>([1, 1])", "val = tensor<int32, [2]>([2, 3])"),
              ElementsAre("11: y: conv: declared as tensor<fp16, [1, 32, 1, 32]>, expected "
                          "tensor<fp16, [1, 32, 1, 11]>"));
  EXPECT_THAT(problems_with("tensor<fp16, [1, 4, 1, 32]> x", "tensor<fp16, [1, 5, 1, 32]> x"),
              ElementsAre(HasSubstr("weight: tensor<fp16, [32, 4, 1, 1]> in 1 groups")));
}

TEST_F(CheckerTest, LooksIntoTheWeightFile) {
  EXPECT_THAT(problems_with("uint64(64)", "uint64(128)"), ElementsAre(HasSubstr("128")));
  EXPECT_THAT(problems_with("uint64(64)", "uint64(256)"),
              ElementsAre("5: w: the blob at 256 has elements of another type than uint6"));
  EXPECT_THAT(problems_with("weights/weight.bin", "weights/other.bin"),
              ElementsAre("5: w: no weight file @model_path/weights/other.bin"));
  const auto wrong_shape = problems_with("lut = tensor<fp16, [2, ", "lut = tensor<fp16, [4, ");
  EXPECT_THAT(wrong_shape, Contains("5: w: the blob at 256 has 128 elements, expected tensor<fp16, "
                                    "[4, 1, 1, 1, 64, 1]>"));
  EXPECT_THAT(problems_with("lut = tensor<fp16, [2, 1, 1, 1, 64, 1]>",
                            "lut = tensor<fp16, [1, 1, 1, 1, 64, 2]>"),
              ElementsAre(HasSubstr("expected [groups…, 64, 1]")));
  EXPECT_THAT(problems_with("lut = tensor<fp16, [2, 1, 1, 1, 64, 1]>",
                            "lut = tensor<fp16, [1, 2, 1, 1, 64, 1]>"),
              IsEmpty());
}

TEST_F(CheckerTest, KnowsTheEnginesLimits) {
  EXPECT_THAT(problems(kExampleText, {.max_rank = 3}),
              Contains("11: y: rank 4, expected at most 3"));
  EXPECT_THAT(problems(kExampleText, {.max_axis = 31}),
              ElementsAre("11: y: axis 3 of 32, expected at most 31"));
  EXPECT_THAT(problems(kExampleText, {.max_channels = 31}),
              ElementsAre("11: y: axis 1 of 32, expected at most 31"));
  EXPECT_THAT(problems(kExampleText, {.max_conv_outputs = 31}),
              ElementsAre("11: y: conv: 32 output channels, expected at most 31"));
  EXPECT_THAT(problems(kExampleText, {.max_weight_bytes = 351}),
              ElementsAre("main: weights of 352 bytes, expected at most 351"));
  EXPECT_THAT(problems_of("tensor<fp16, [1, 8, 4, 2]> y = slice_by_size(x = x, begin = "
                          "tensor<int32, [4]>([0, 0, 0, 1]), size = tensor<int32, [4]>([1, 8, 4, "
                          "2]))[name = string(\"y\")];"),
              ElementsAre("5: y: slice_by_size: an offset on the last axis"));
}

// Result types by hand, one operation each, applied to x of [1, 8, 4, 6].
TEST_F(CheckerTest, KnowsWhatEachOperationGives) {
  struct Row {
    std::string type, call;
  };
  const std::string fp16 = "tensor<fp16, ";
  const auto ints = [](const std::string& values, int count) {
    return "tensor<int32, [" + std::to_string(count) + "]>([" + values + "])";
  };
  std::vector<Row> rows{
      {"[1, 8, 4, 4]", "matmul(x = x, y = x, transpose_y = bool(true))"},
      {"[1, 8, 6, 6]", "matmul(x = x, y = x, transpose_x = bool(true))"},
      {"[1, 8, 4, 6]", "add(x = x, y = fp16(1))"},
      {"[1, 8, 4, 6]", "mul(x = x, y = tensor<fp16, [1, 1, 1, 1]>([[[[2]]]]))"},
      {"[1, 8, 4, 6]", "rsqrt(x = x, epsilon = fp16(0x1p-14))"},
      {"[1, 8, 4, 6]", "clip(x = x, alpha = fp16(0), beta = fp16(1))"},
      {"[1, 8, 4, 6]", "softmax(x = x, axis = int32(-1))"},
      {"[1, 8, 4, 6]", "layer_norm(x = x, axes = " + ints("1", 1) + ", epsilon = fp16(0x1p-14))"},
      {"[1, 8, 1, 6]", "reduce_sum(x = x, axes = " + ints("-2", 1) + ", keep_dims = bool(true))"},
      {"[1, 4]", "reduce_max(x = x, axes = " + ints("1, 3", 2) + ", keep_dims = bool(false))"},
      {"[6, 1, 4, 8]", "transpose(x = x, perm = " + ints("3, 0, 2, 1", 4) + ")"},
      {"[2, 96]", "reshape(x = x, shape = " + ints("2, 96", 2) + ")"},
      {"[1, 1, 8, 4, 6]", "expand_dims(x = x, axes = " + ints("1", 1) + ")"},
      {"[8, 4, 6]", "squeeze(x = x, axes = " + ints("0", 1) + ")"},
      {"[1, 3, 4, 6]", "slice_by_size(x = x, begin = " + ints("0, 5, 0, 0", 4) +
                           ", size = " + ints("1, 3, 4, 6", 4) + ")"},
      {"[1, 16, 4, 6]", "concat(values = (x, x), axis = int32(1), interleave = bool(false))"},
      {"[1, 8, 4, 12]", "tile(x = x, reps = " + ints("1, 1, 1, 2", 4) + ")"},
      {"[1, 8, 5, 8]", "pad(x = x, pad = " + ints("0, 1, 2, 0", 4) +
                           ", mode = string(\"constant\"), constant_val = fp16(0))"},
  };
  for (const char* name : {"sqrt", "exp", "tanh", "sigmoid", "silu", "softplus", "relu", "abs"}) {
    rows.push_back({"[1, 8, 4, 6]", std::string(name) + "(x = x)"});
  }
  for (const Row& row : rows) {
    EXPECT_THAT(problems_of(fp16 + row.type + "> y = " + row.call + "[name = string(\"y\")];"),
                IsEmpty())
        << row.call;
    EXPECT_THAT(problems_of(fp16 + "[1, 7]> y = " + row.call + "[name = string(\"y\")];"),
                ElementsAre(HasSubstr("expected tensor<fp16, " + row.type)))
        << row.call;
  }
  EXPECT_THAT(problems_of("tensor<fp16, [1, 3, 4, 6]> y, tensor<fp16, [1, 5, 4, 6]> z = split(x = "
                          "x, axis = int32(1), split_sizes = " +
                          ints("3, 5", 2) + ")[name = string(\"y\")];"),
              IsEmpty());
  EXPECT_THAT(problems_of("tensor<bool, [1, 8, 4, 6]> m = greater(x = x, y = fp16(0))[name = "
                          "string(\"m\")]; tensor<fp16, [1, 8, 4, 6]> y = select(cond = m, a = x, "
                          "b = fp16(0))[name = string(\"y\")];"),
              IsEmpty());
  EXPECT_THAT(problems_of("tensor<fp32, [1, 8, 4, 6]> y = cast(x = x, dtype = "
                          "string(\"fp32\"))[name = string(\"y\")];"),
              IsEmpty());
}

// Whatever the operation: missing and meaningless arguments are problems, not crashes.
TEST_F(CheckerTest, SurvivesNonsenseForEveryOperation) {
  for (const Operation& operation : operations()) {
    for (const char* nonsense :
         {"x", "(x, x)", "int32(-3)", "fp16(1)", "bool(true)", "string(\"a\")",
          "tensor<int32, [2]>([-9, 2147483647])", "tensor<int32, [4]>([0, 1, 2, 3])",
          "tensor<int32, [8]>([2147483647, 2147483647, 2147483647, 2147483647, 1, 1, 1, 1])",
          "tensor<fp16, [1, 1]>([[1]])"}) {
      std::string call = std::string(operation.name) + "(";
      for (const std::string_view name : operation.required) {
        call += std::string(name) + " = " +
                (name == "x" && std::string(nonsense) != "(x, x)" ? "x" : nonsense) + ", ";
      }
      call.replace(call.size() - 2, 2, ")");
      EXPECT_THAT(problems_of("tensor<fp16, [77]> y = " + call + "[name = string(\"y\")];"),
                  testing::Not(IsEmpty()))
          << call;
    }
  }
}

}  // namespace
}  // namespace clefkit::mil
