#include "clefkit/mil/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "clefkit/base/error_of.h"
#include "clefkit/mil/example_program.h"
#include "clefkit/mil/operations.h"
#include "clefkit/mil/parser.h"

namespace clefkit::mil {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr NumericProfile kProfiles[] = {NumericProfile::kIdeal, NumericProfile::kM1,
                                        NumericProfile::kH15g, NumericProfile::kM5,
                                        NumericProfile::kStrict};

Program program_of(const std::string& inputs, const std::string& statements,
                   const std::string& outputs = "y") {
  return parse_program(
      "program(1.3)\n[buildInfo = dict<string, string>({{\"a\", \"b\"}})]\n{\n"
      "func main<ios18>(" +
          inputs + ") {\n" + statements + "\n} -> (" + outputs + ");\n}\n",
      "test");
}

Tensors run(const Program& program, const Tensors& inputs,
            NumericProfile profile = NumericProfile::kIdeal) {
  return Simulator(program, {}, profile).run(inputs);
}

// 0, 1, 2, …
Tensor counting(Shape shape, float first = 0) {
  Tensor tensor{std::move(shape), {}};
  tensor.values.resize(static_cast<std::size_t>(element_count(tensor.shape)));
  std::iota(tensor.values.begin(), tensor.values.end(), first);
  return tensor;
}

std::string type_of(const Shape& shape) { return to_string(ValueType{DataType::kFloat16, shape}); }

// What `call` makes of x, and of z where it is given.
std::vector<float> result(const Tensor& x, const Shape& shape, const std::string& call,
                          NumericProfile profile = NumericProfile::kIdeal, const Tensor& z = {}) {
  std::string inputs = type_of(x.shape) + " x";
  Tensors tensors{{"x", x}};
  if (!z.shape.empty()) {
    inputs += ", " + type_of(z.shape) + " z";
    tensors["z"] = z;
  }
  const Program program =
      program_of(inputs, type_of(shape) + " y = " + call + "[name = string(\"y\")];");
  return run(program, tensors, profile).at("y").values;
}

std::string ints(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "tensor<int32, [" + std::to_string(values.size()) + "]>([" + text + "])";
}

// The values that the specification gives for its example.
TEST(Simulator, ComputesTheSpecificationsExample) {
  const std::vector<std::uint8_t> file = example_weights();
  const WeightBlobReader reader(file, "weight.bin");
  const Program program = parse_program(kExampleText, "example");
  const Tensor ones{{1, 4, 1, 32}, std::vector<float>(128, 1.0f)};
  for (const NumericProfile profile : kProfiles) {
    const Simulator simulator(program, {{kWeightPath, &reader}}, profile);
    const Tensor y = simulator.run({{"x", ones}}).at("y");
    ASSERT_EQ(y.shape, (Shape{1, 32, 1, 32}));
    for (std::size_t place = 0; place < 32; ++place) {
      EXPECT_EQ(y.values[0 * 32 + place], 0.09375f);
      EXPECT_EQ(y.values[1 * 32 + place], 0.34375f);
      EXPECT_EQ(y.values[15 * 32 + place], 3.84375f);
      EXPECT_EQ(y.values[16 * 32 + place], -0.09375f);
      EXPECT_EQ(y.values[31 * 32 + place], -3.84375f);
    }
  }
}

TEST(Simulator, MovesElements) {
  const Tensor x = counting({2, 3, 2});
  EXPECT_THAT(result(x, {2, 2, 3}, "transpose(x = x, perm = " + ints({2, 0, 1}) + ")"),
              ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
  EXPECT_THAT(result(x, {12, 1}, "reshape(x = x, shape = " + ints({12, 1}) + ")"),
              ElementsAreArray(x.values));
  EXPECT_THAT(result(x, {1, 2, 2},
                     "slice_by_size(x = x, begin = " + ints({1, 1, 0}) +
                         ", size = " + ints({1, 2, 2}) + ")"),
              ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(result(counting({1, 2}), {2, 4}, "tile(x = x, reps = " + ints({2, 2}) + ")"),
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(result(counting({1, 2}, 1), {2, 4},
                     "pad(x = x, pad = " + ints({1, 0, 0, 2}) +
                         ", mode = string(\"constant\"), constant_val = fp16(-1))"),
              ElementsAre(-1, -1, -1, -1, 1, 2, -1, -1));
  EXPECT_THAT(result(counting({2, 1}), {2, 3}, "concat(values = (x, z), axis = int32(-1))",
                     NumericProfile::kIdeal, counting({2, 2}, 10)),
              ElementsAre(0, 10, 11, 1, 12, 13));
  const Program split =
      program_of(type_of({2, 3}) + " x",
                 type_of({2, 1}) + " y, " + type_of({2, 2}) +
                     " z = split(x = x, axis = int32(1), split_sizes = " + ints({1, 2}) +
                     ")[name = string(\"y\")];",
                 "y, z");
  const Tensors parts = run(split, {{"x", counting({2, 3})}});
  EXPECT_THAT(parts.at("y").values, ElementsAre(0, 3));
  EXPECT_THAT(parts.at("z").values, ElementsAre(1, 2, 4, 5));
}

TEST(Simulator, BroadcastsBinaryOperations) {
  const Tensor x = counting({2, 1, 3}, 1), z = counting({1, 2, 1}, 2);
  const auto of = [&](const std::string& op) {
    return result(x, {2, 2, 3}, op + "(x = x, y = z)", NumericProfile::kIdeal, z);
  };
  EXPECT_THAT(of("mul"), ElementsAre(2, 4, 6, 3, 6, 9, 8, 10, 12, 12, 15, 18));
  EXPECT_THAT(of("sub"), ElementsAre(-1, 0, 1, -2, -1, 0, 2, 3, 4, 1, 2, 3));
  EXPECT_THAT(of("minimum"), ElementsAre(1, 2, 2, 1, 2, 3, 2, 2, 2, 3, 3, 3));
  EXPECT_THAT(of("pow"), ElementsAre(1, 4, 9, 1, 8, 27, 16, 25, 36, 64, 125, 216));
  // Of one rank 0.
  EXPECT_THAT(result(counting({3}), {3}, "add(x = x, y = fp16(0x1p-1))"),
              ElementsAre(0.5, 1.5, 2.5));
  const Program choose = program_of(
      type_of({3}) + " x",
      "tensor<bool, [3]> m = greater(x = x, y = fp16(1))[name = string(\"m\")];" + type_of({3}) +
          " y = select(cond = m, a = x, b = fp16(-1))[name = string(\"y\")];");
  EXPECT_THAT(run(choose, {{"x", counting({3})}}).at("y").values, ElementsAre(-1, -1, 2));
}

TEST(Simulator, MultipliesMatrices) {
  const Tensor x = counting({1, 2, 2, 3}), y = counting({1, 1, 3, 2});
  EXPECT_THAT(result(x, {1, 2, 2, 2}, "matmul(x = x, y = z)", NumericProfile::kIdeal, y),
              ElementsAre(10, 13, 28, 40, 46, 67, 64, 94));
  EXPECT_THAT(result(x, {1, 2, 2, 2}, "matmul(x = x, y = x, transpose_y = bool(true))"),
              ElementsAre(5, 14, 14, 50, 149, 212, 212, 302));
  EXPECT_THAT(
      result(x, {1, 2, 3, 3}, "matmul(x = x, y = x, transpose_x = bool(true))"),
      ElementsAre(9, 12, 15, 12, 17, 22, 15, 22, 29, 117, 132, 147, 132, 149, 166, 147, 166, 185));
}

// Two groups, a kernel of 2 with dilation 2, padding 1 before and 2 after, stride 2.
TEST(Simulator, Convolves) {
  const std::string weight =
      "tensor<fp16, [2, 1, 1, 2]> w = const()[name = string(\"w\"), val = tensor<fp16, [2, 1, 1, "
      "2]>([[[[1, 10]]], [[[2, 1]]]])];";
  const Program program = program_of(
      type_of({1, 2, 1, 4}) + " x",
      weight + type_of({1, 2, 1, 3}) + " y = conv(x = x, weight = w, strides = " + ints({1, 2}) +
          ", pad_type = string(\"custom\"), pad = " + ints({0, 0, 1, 2}) +
          ", dilations = " + ints({1, 2}) + ", groups = int32(2))[name = string(\"y\")];");
  // Of 0 [1 2 3 4] 0 0 the pairs (0, 2), (2, 4), (4, 0), and the same of 5 6 7 8.
  EXPECT_THAT(run(program, {{"x", counting({1, 2, 1, 4}, 1)}}).at("y").values,
              ElementsAre(20, 42, 4, 6, 20, 16));
}

TEST(Simulator, ReducesAndNorms) {
  const Tensor x = counting({2, 3}, 1);
  const std::string axes = "(x = x, axes = " + ints({1}) + ", keep_dims = bool(true))";
  EXPECT_THAT(result(x, {2, 1}, "reduce_sum" + axes), ElementsAre(6, 15));
  EXPECT_THAT(result(x, {2, 1}, "reduce_mean" + axes), ElementsAre(2, 5));
  EXPECT_THAT(result(x, {2, 1}, "reduce_max" + axes), ElementsAre(3, 6));
  EXPECT_THAT(result(x, {2, 1}, "reduce_min" + axes), ElementsAre(1, 4));
  EXPECT_THAT(result(x, {2, 1}, "reduce_sum_square" + axes), ElementsAre(14, 77));
  EXPECT_THAT(
      result(x, {3}, "reduce_sum(x = x, axes = " + ints({0}) + ", keep_dims = bool(false))"),
      ElementsAre(5, 7, 9));
  EXPECT_THAT(result(counting({1, 2}), {1, 2}, "softmax(x = x, axis = int32(1))"),
              Pointwise(FloatNear(2e-4f), {0.26894142f, 0.73105858f}));
  EXPECT_THAT(result(Tensor{{1, 2, 1}, {3, 4}}, {1, 2, 1}, "l2_norm(x = x, epsilon = fp16(0))"),
              Pointwise(FloatNear(3e-4f), {0.6f, 0.8f}));
  EXPECT_THAT(result(Tensor{{1, 2}, {1, 3}}, {1, 2},
                     "layer_norm(x = x, axes = " + ints({1}) +
                         ", gamma = tensor<fp16, [2]>([2, "
                         "4]), beta = tensor<fp16, [2]>([0, 1]), epsilon = fp16(0))"),
              ElementsAre(-2, 5));
}

TEST(Simulator, ComputesFunctions) {
  const Tensor x{{5}, {-2, -0.5, 0, 1, 3}};
  const auto expect = [&](const std::string& call, std::vector<float> expected) {
    EXPECT_THAT(result(x, {5}, call), Pointwise(FloatNear(0.01f), expected)) << call;
  };
  expect("relu(x = x)", {0, 0, 0, 1, 3});
  expect("abs(x = x)", {2, 0.5, 0, 1, 3});
  expect("square(x = x)", {4, 0.25, 0, 1, 9});
  expect("exp(x = x)", {0.1353f, 0.6065f, 1, 2.7183f, 20.0855f});
  expect("exp2(x = x)", {0.25f, 0.7071f, 1, 2, 8});
  expect("tanh(x = x)", {-0.9640f, -0.4621f, 0, 0.7616f, 0.9951f});
  expect("sigmoid(x = x)", {0.1192f, 0.3775f, 0.5f, 0.7311f, 0.9526f});
  expect("silu(x = x)", {-0.2384f, -0.1888f, 0, 0.7311f, 2.8577f});
  expect("softplus(x = x)", {0.1269f, 0.4741f, 0.6931f, 1.3133f, 3.0486f});
  expect("clip(x = x, alpha = fp16(-1), beta = fp16(2))", {-1, -0.5, 0, 1, 2});
  EXPECT_THAT(result(Tensor{{2}, {4, 0.25}}, {2}, "sqrt(x = x)"), ElementsAre(2, 0.5));
  EXPECT_THAT(result(Tensor{{2}, {4, 0.25}}, {2}, "rsqrt(x = x, epsilon = fp16(0))"),
              ElementsAre(0.5, 2));
  EXPECT_THAT(result(Tensor{{2}, {4, 0.25}}, {2}, "inverse(x = x, epsilon = fp16(0))"),
              ElementsAre(0.25, 4));
  EXPECT_EQ(result(Tensor{{1}, {1}}, {1}, "log(x = x, epsilon = fp16(0))")[0], 0);
}

// Every operation that the checker lets through is computed: none ends in the wrong function.
TEST(Simulator, HasAFormulaForEveryFunctionOfOneArgument) {
  for (const char* op :
       {"sqrt", "exp", "exp2", "tanh", "sigmoid", "silu", "softplus", "relu", "abs", "square"}) {
    ASSERT_NE(find_operation(op), nullptr);
    const float value = result(Tensor{{1}, {2}}, {1}, std::string(op) + "(x = x)")[0];
    const bool is_sqrt = std::abs(value - std::sqrt(2.0f)) < 1e-3f;
    EXPECT_EQ(is_sqrt, std::string(op) == "sqrt") << op;
  }
}

// What others measured on machines (ane.md 5.1).
float product_of(NumericProfile profile, const std::vector<float>& x, const std::vector<float>& y) {
  const auto size = static_cast<std::int64_t>(x.size());
  return result(Tensor{{1, size}, x}, {1, 1}, "matmul(x = x, y = z)", profile,
                Tensor{{size, 1}, y})[0];
}

TEST(Profiles, AddAsTheirMachinesDo) {
  std::vector<float> x(1025, 1.0f), ones(1025, 1.0f);
  x[0] = 4096;
  EXPECT_EQ(product_of(NumericProfile::kM1, x, ones), 5116);
  EXPECT_EQ(product_of(NumericProfile::kH15g, x, ones), 5120);
  EXPECT_EQ(product_of(NumericProfile::kIdeal, x, ones), 5120);
}

TEST(Profiles, RoundTiesAsTheirMachinesDo) {
  const std::vector<float> x{2048, 1}, ones{1, 1};
  EXPECT_EQ(product_of(NumericProfile::kM1, x, ones), 2048);
  EXPECT_EQ(product_of(NumericProfile::kIdeal, x, ones), 2048);
  EXPECT_EQ(product_of(NumericProfile::kH15g, x, ones), 2050);
  EXPECT_EQ(product_of(NumericProfile::kM5, x, ones), 2050);
  EXPECT_EQ(round_to_half(NumericProfile::kM5, -2049), -2050);
  EXPECT_EQ(round_to_half(NumericProfile::kM5, 2048.9), 2048);
  EXPECT_EQ(round_to_half(NumericProfile::kM5, 2049.1), 2050);
  EXPECT_EQ(round_to_half(NumericProfile::kM5, 65519), 65504);
  EXPECT_EQ(round_to_half(NumericProfile::kM5, 65520), kInfinity);
  EXPECT_EQ(round_to_half(NumericProfile::kM5, 0x1p-25), 0x1p-24f);
  EXPECT_EQ(round_to_half(NumericProfile::kIdeal, 0x1p-25), 0);
}

TEST(Profiles, OverflowAsTheirMachinesDo) {
  const std::vector<float> ones{1, 1}, near{32736, 16}, over{32736, 32};
  EXPECT_EQ(product_of(NumericProfile::kM1, near, ones), 32752);
  EXPECT_EQ(product_of(NumericProfile::kM1, over, ones), kInfinity);
  EXPECT_EQ(product_of(NumericProfile::kM5, {-32736, -32}, ones), -kInfinity);
  EXPECT_EQ(product_of(NumericProfile::kIdeal, over, ones), 32768);
  // A sum on the way is enough there, and the result is nothing.
  EXPECT_EQ(product_of(NumericProfile::kH15g, {32736, 32, -32768}, {1, 1, 1}), 0);
  EXPECT_EQ(product_of(NumericProfile::kH15g, {32736, 0, -32736}, {1, 1, 1}), 0);
  EXPECT_EQ(product_of(NumericProfile::kH15g, near, ones), 32752);
  // Elementwise the limit is FP16's own.
  EXPECT_EQ(result(Tensor{{1}, {40000}}, {1}, "add(x = x, y = fp16(0))", NumericProfile::kM1)[0],
            40000);
}

TEST(Profiles, FlushSmallProductsWhereThatWasSeen) {
  const std::vector<float> tiny{0x1p-10f}, other{0x1p-10f};
  EXPECT_EQ(product_of(NumericProfile::kH15g, tiny, other), 0);
  EXPECT_EQ(product_of(NumericProfile::kM5, tiny, other), 0x1p-20f);
}

TEST(Profiles, HaveTablesForActivationsOnM1) {
  // The published largest errors: sigmoid 3.4e-3, tanh 1.7e-3.
  double sigmoid_error = 0, tanh_error = 0;
  Tensor x{{4001}, {}};
  for (int i = -2000; i <= 2000; ++i) x.values.push_back(static_cast<float>(i) / 256);
  const auto sigmoid = result(x, {4001}, "sigmoid(x = x)", NumericProfile::kM1);
  const auto tanh = result(x, {4001}, "tanh(x = x)", NumericProfile::kM1);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double value = x.values[i];
    sigmoid_error = std::max(sigmoid_error, std::abs(sigmoid[i] - 1 / (1 + std::exp(-value))));
    tanh_error = std::max(tanh_error, std::abs(tanh[i] - std::tanh(value)));
  }
  EXPECT_NEAR(sigmoid_error, 3.4e-3, 8e-4);
  EXPECT_NEAR(tanh_error, 1.7e-3, 4e-4);
  EXPECT_EQ(result(Tensor{{2}, {11.125, 11}}, {2}, "exp(x = x)", NumericProfile::kM1)[0],
            kInfinity);
  EXPECT_EQ(result(Tensor{{1}, {12}}, {1}, "softplus(x = x)", NumericProfile::kM1)[0], 0);
}

TEST(Profiles, StrictTellsWhatAMachineCouldGetWrong) {
  const auto refusal = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::string(error_of([&] { product_of(NumericProfile::kStrict, x, y); }).what());
  };
  EXPECT_EQ(refusal({32736, 32, -32768}, {1, 1, 1}),
            "y: matmul: a sum reached 2^15, half of what FP16 holds");
  EXPECT_EQ(refusal({100, 200}, {100, 100}), "no error");
  const Error error = error_of([] {
    result(Tensor{{2}, {1, 60000}}, {2}, "add(x = x, y = x)", NumericProfile::kStrict);
  });
  EXPECT_STREQ(error.what(), "y: add: element 1 is inf, expected a finite number");
}

TEST(Simulator, RefusesProgramsAndInputsThatAreWrong) {
  const Program wrong =
      program_of(type_of({2}) + " x", type_of({3}) + " y = relu(x = x)[name = string(\"y\")];");
  EXPECT_THAT(std::string(error_of([&] { run(wrong, {}); }).what()),
              HasSubstr("program: 5: y: relu: declared as tensor<fp16, [3]>"));
  const Program program =
      program_of(type_of({2}) + " x", type_of({2}) + " y = relu(x = x)[name = string(\"y\")];");
  EXPECT_STREQ(error_of([&] { run(program, {}); }).what(),
               "x: missing, expected tensor<fp16, [2]>");
  EXPECT_STREQ(error_of([&] {
                 run(program, {{"x", counting({3})}});
               }).what(),
               "x: [3] with 3 elements, expected tensor<fp16, [2]>");
}

TEST(Simulator, ShowsWhatItComputes) {
  const Program program = program_of(
      type_of({2}) + " x", type_of({2}) + " a = relu(x = x)[name = string(\"a\")];" + type_of({2}) +
                               " y = add(x = a, y = a)[name = string(\"y\")];");
  Simulator simulator(program, {}, NumericProfile::kIdeal);
  std::vector<std::string> seen;
  simulator.watch([&](const Statement& statement, const Tensor& tensor) {
    seen.push_back(statement.outputs[0].name + std::to_string(tensor.values.size()));
  });
  simulator.run({{"x", counting({2})}});
  EXPECT_THAT(seen, ElementsAre("a2", "y2"));
}

TEST(Profiles, HaveNames) {
  for (const NumericProfile profile : kProfiles) {
    EXPECT_EQ(numeric_profile(to_string(profile)), profile);
  }
  EXPECT_EQ(numeric_profile("m9"), std::nullopt);
}

}  // namespace
}  // namespace clefkit::mil
