#include "clefkit/mil/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"
#include "clefkit/mil/example_program.h"
#include "clefkit/mil/printer.h"

namespace clefkit::mil {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with_statement(const std::string& statement) {
  return "program(1.3)\n[buildInfo = dict<string, string>({{\"a\", \"b\"}})]\n{\n"
         "func main<ios18>(tensor<fp16, [2]> x) {\n" +
         statement + "\n} -> (y);\n}\n";
}

std::string refusal(const std::string& text) {
  const Error error = error_of([&] { parse_program(text, "a.mil"); });
  return std::string(error.what());
}

TEST(Parser, ReadsTheSpecificationsExample) {
  const Program program = parse_program(kExampleText, "example");
  EXPECT_EQ(program.version, "1.3");
  ASSERT_EQ(program.build_info.size(), 4u);
  EXPECT_EQ(program.build_info[0].first, "coremlc-component-MIL");
  EXPECT_EQ(program.build_info[0].second, "3510.2.1");
  ASSERT_EQ(program.functions.size(), 1u);
  const Function& function = program.functions[0];
  EXPECT_EQ(function.opset, "ios18");
  EXPECT_THAT(function.inputs, ElementsAre(Variable{"x", {DataType::kFloat16, {1, 4, 1, 32}}}));
  EXPECT_THAT(function.outputs, ElementsAre("y"));
  ASSERT_EQ(function.statements.size(), 7u);

  const Statement& weight = function.statements[0];
  EXPECT_EQ(weight.line, 5u);
  EXPECT_EQ(weight.op, "constexpr_lut_to_dense");
  const auto& indices = std::get<Value>(*weight.argument("indices"));
  EXPECT_EQ(indices.type, (ValueType{DataType::kUInt6, {32, 4, 1, 1}}));
  EXPECT_EQ(std::get<BlobReference>(indices.elements), (BlobReference{kWeightPath, 64}));
  EXPECT_EQ(*function.statements[1].attribute("val"), Value::string("valid"));
  EXPECT_EQ(*function.statements[3].attribute("val"), Value::integers({0, 0, 0, 0}));
  EXPECT_EQ(std::get<std::string>(*function.statements[6].argument("weight")), "w");
}

TEST(Parser, ReadsEveryKindOfValue) {
  const auto value_of = [](const std::string& text) {
    const Program program = parse_program(with_statement(text), "test");
    return *program.functions[0].statements[0].attribute("val");
  };
  EXPECT_EQ(value_of("tensor<fp16, [2, 2]> y = const()[val = tensor<fp16, [2, 2]>([[1, -0x1.8p-3], "
                     "[65504, 0x1p-24]])];"),
            (Value{{DataType::kFloat16, {2, 2}},
                   std::vector<double>{1, -0.1875, 65504, std::ldexp(1, -24)}}));
  EXPECT_EQ(value_of("fp32 y = const()[val = fp32(-1.5e-3)];"),
            Value::scalar(DataType::kFloat32, double{-1.5e-3f}));
  // The nearest of fp16: 1638 / 2^14.
  EXPECT_EQ(value_of("fp16 y = const()[val = fp16(0.1)];"),
            Value::scalar(DataType::kFloat16, 1638.0 / 16384));
  EXPECT_EQ(value_of("fp16 y = const()[val = fp16(-inf)];"),
            Value::scalar(DataType::kFloat16, -std::numeric_limits<double>::infinity()));
  EXPECT_EQ(value_of("bool y = const()[val = bool(true)];"), Value::boolean(true));
  EXPECT_EQ(value_of(R"(string y = const()[val = string("a \"b\" \\ \n")];)"),
            Value::string("a \"b\" \\ \n"));
  EXPECT_EQ(value_of("tensor<int32, []> y = const()[val = tensor<int32, []>(-7)];"),
            Value::scalar(DataType::kInt32, std::int64_t{-7}));
  EXPECT_EQ(value_of("tensor<uint6, [3]> y = const()[val = tensor<uint6, [3]>([0, 1, 63])];"),
            (Value{{DataType::kUInt6, {3}}, std::vector<std::int64_t>{0, 1, 63}}));
}

TEST(Parser, ReadsTuplesAndSeveralResults) {
  const Program program = parse_program(
      with_statement("tensor<fp16, [1]> a, tensor<fp16, [1]> y = split(values = (x, x), axis = "
                     "int32(0))[name = string(\"a\")];"),
      "test");
  const Statement& statement = program.functions[0].statements[0];
  EXPECT_EQ(statement.outputs.size(), 2u);
  EXPECT_THAT(std::get<std::vector<std::string>>(*statement.argument("values")),
              ElementsAre("x", "x"));
  EXPECT_EQ(std::get<Value>(*statement.argument("axis")),
            Value::scalar(DataType::kInt32, std::int64_t{0}));
}

TEST(Printer, WritesWhatWasRead) {
  EXPECT_EQ(to_text(parse_program(kExampleText, "example")), kExampleText);
}

TEST(Printer, WritesScalarsAsTensorsForOldCompilers) {
  Program program = parse_program(kExampleText, "example");
  program.version = "1.0";
  const std::string text = to_text(program);
  EXPECT_THAT(text, HasSubstr("tensor<int32, []> gr = const()[name = tensor<string, []>(\"gr\"), "
                              "val = tensor<int32, []>(1)];"));
  EXPECT_THAT(text, HasSubstr("BLOBFILE(path = tensor<string, []>(\"@model_path/weights/"
                              "weight.bin\"), offset = tensor<uint64, []>(64))"));
  EXPECT_EQ(to_text(parse_program(text, "old")), text);
}

TEST(Printer, KeepsFloatsExact) {
  Program program = parse_program(kExampleText, "example");
  std::vector<double> floats{0.0,
                             -0.0,
                             65504,
                             -std::ldexp(1, -24),
                             0.333251953125,
                             std::numeric_limits<double>::infinity()};
  const Value value{{DataType::kFloat16, {2, 3}}, floats};
  program.functions[0].statements[1].attributes[1].second = value;
  const Program again = parse_program(to_text(program), "again");
  const Value& read = *again.functions[0].statements[1].attribute("val");
  EXPECT_EQ(read, value);
  EXPECT_TRUE(std::signbit(std::get<std::vector<double>>(read.elements)[1]));
}

TEST(Parser, SaysWhereAndWhatItExpected) {
  EXPECT_EQ(refusal("func"), "a.mil:1: found func, expected \"program\"");
  EXPECT_THAT(refusal(with_statement("tensor<fp17, [2]> y = relu(x = x)[];")),
              HasSubstr("a.mil:5: found fp17, [2]> y = relu(x = , expected an element type"));
  EXPECT_THAT(refusal(with_statement("tensor<fp16, [2]> y = relu(x = x, x = x)[];")),
              HasSubstr("each argument once"));
  EXPECT_THAT(refusal(with_statement("tensor<fp16, [-1]> y = relu(x = x)[];")),
              HasSubstr("a dimension from 0 to 2^31"));
  EXPECT_THAT(refusal(with_statement("tensor<fp16, [?]> y = relu(x = x)[];")),
              HasSubstr("found ?]> y = relu(x = x)[];, expected an integer"));
  EXPECT_THAT(refusal(with_statement("int8 y = const()[val = int8(128)];")),
              HasSubstr("found 128)];, expected a number within int8"));
  for (const char* number : {"0x1.002p0", "65520", "-0x1p16", "0x1p-25"}) {
    EXPECT_THAT(
        refusal(with_statement("fp16 y = const()[val = fp16(" + std::string(number) + ")];")),
        HasSubstr("a number that fp16 holds"))
        << number;
  }
  EXPECT_THAT(refusal(with_statement("tensor<int32, [2]> y = const()[val = tensor<int32, "
                                     "[2]>([1])];")),
              HasSubstr("expected \",\""));
  EXPECT_THAT(refusal(with_statement("string y = const()[val = string(\"abc")),
              HasSubstr("a closing quote"));
  EXPECT_THAT(refusal(with_statement("string y = const()[val = string(BLOBFILE(path = "
                                     "string(\"a\"), offset = uint64(1)))];")),
              HasSubstr("a type that weight files have"));
  EXPECT_THAT(refusal(std::string(kExampleText) + "more"), HasSubstr("the end of the text"));
}

TEST(Parser, RefusesEveryTextThatIsCutShort) {
  const std::string_view text = kExampleText;
  const std::size_t last = text.rfind('}');
  for (std::size_t size = 0; size <= last; ++size) {
    EXPECT_THROW(parse_program(text.substr(0, size), "cut"), Error) << size;
  }
}

TEST(Parser, DoesNotBelieveSizes) {
  EXPECT_THAT(refusal(with_statement("tensor<int32, [2000000000]> y = const()[val = tensor<int32, "
                                     "[2000000000]>([1, 2])];")),
              HasSubstr("expected \",\""));
  EXPECT_THAT(refusal(with_statement("tensor<int32, [2000000000, 2000000000]> y = relu()[];")),
              HasSubstr("2^40"));
  EXPECT_THAT(refusal(with_statement("tensor<int32, [1, 1, 1, 1, 1, 1, 1, 1, 1]> y = relu()[];")),
              HasSubstr("at most 8 dimensions"));
}

}  // namespace
}  // namespace clefkit::mil
