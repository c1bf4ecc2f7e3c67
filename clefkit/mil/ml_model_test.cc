#include "clefkit/mil/ml_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clefkit/base/error_of.h"
#include "clefkit/mil/example_program.h"
#include "clefkit/mil/parser.h"

namespace clefkit::mil {
namespace {

using testing::HasSubstr;

// Of bytes that may be zero.
std::string text(const std::vector<int>& bytes) { return {bytes.begin(), bytes.end()}; }

Program relu_program() {
  Function function;
  function.inputs = {{"x", {DataType::kFloat16, {2}}}};
  function.statements = {{.outputs = {{"y", {DataType::kFloat16, {2}}}},
                          .op = "relu",
                          .arguments = {{"x", std::string("x")}},
                          .attributes = {{"name", Value::string("y")}}}};
  function.outputs = {"y"};
  Program program;
  program.functions = {function};
  return program;
}

// The model of relu_program with a constant before the operation.
std::string model_with(const Value& value) {
  Program program = relu_program();
  auto& statements = program.functions[0].statements;
  statements.insert(
      statements.begin(),
      {.outputs = {{"c", value.type}}, .op = "const", .attributes = {{"val", value}}});
  return to_ml_model(program, {});
}

// Every length below was added up by hand from the field numbers and the rules of the encoding.
TEST(MlModel, WritesASmallProgramAsProtobufSays) {
  // ValueType.tensorType {dataType FLOAT16, rank 1, dimensions {constant {size 2}}}
  const std::string type = text({0x0A, 10, 0x08, 10, 0x10, 1, 0x1A, 4, 0x0A, 2, 0x08, 2});
  // NamedValueType {name, type}
  const std::string x = text({0x0A, 1, 'x', 0x12, 12}) + type;
  const std::string y = text({0x0A, 1, 'y', 0x12, 12}) + type;
  // FeatureDescription {name, type.multiArrayType {shape [2], dataType 65552}}
  const std::string array = text({0x2A, 7, 0x0A, 1, 2, 0x10, 0x90, 0x80, 0x04});
  const std::string description = text({0x0A, 14, 0x0A, 1, 'x', 0x1A, 9}) + array +
                                  text({0x52, 14, 0x0A, 1, 'y', 0x1A, 9}) + array +
                                  text({0xA2, 0x06, 0});  // metadata, empty
  // ValueType.tensorType {dataType STRING, rank 0}
  const std::string string_type = text({0x0A, 4, 0x08, 2, 0x10, 0});
  const std::string operation =
      text({0x0A, 4, 'r', 'e', 'l', 'u'}) +
      text({0x12, 10, 0x0A, 1, 'x', 0x12, 5, 0x0A, 3, 0x0A, 1, 'x'}) +  // inputs["x"]
      text({0x1A, 17}) + y +                                            // outputs
      text({0x2A, 25, 0x0A, 4, 'n', 'a', 'm', 'e', 0x12, 17, 0x12, 6}) + string_type +
      text({0x1A, 7, 0x0A, 5, 0x22, 3, 0x0A, 1, 'y'});
  const std::string function = text({0x0A, 17}) + x + text({0x12, 7}) + "CoreML8" +
                               text({0x1A, 80, 0x0A, 7}) + "CoreML8" +
                               text({0x12, 69, 0x12, 1, 'y', 0x1A, 64}) + operation;
  const std::string program = text({0x08, 1, 0x12, 118, 0x0A, 4, 'm', 'a', 'i', 'n', 0x12, 110}) +
                              function + text({0x22, 37, 0x0A, 9}) + "buildInfo" +
                              text({0x12, 24, 0x12, 18, 0x22, 16, 0x0A, 6}) + string_type +
                              text({0x12, 6}) + string_type + text({0x1A, 2, 0x22, 0});
  EXPECT_EQ(to_ml_model(relu_program(), {}),
            text({0x08, 9, 0x12, 35}) + description + text({0xB2, 0x1F, 0xA1, 0x01}) + program);
}

TEST(MlModel, SaysWhatItIs) {
  const std::string model =
      to_ml_model(relu_program(), {.description = "A relu", .version = "1", .license = "MIT"});
  EXPECT_THAT(model, HasSubstr(text({0xA2, 0x06, 16, 0x0A, 6}) + "A relu" +
                               text({0x12, 1, '1', 0x22, 3}) + "MIT"));
}

TEST(MlModel, WritesEachKindOfElementsInItsField) {
  // immediateValue.tensor with the field of the kind, after the type.
  EXPECT_THAT(model_with(Value::boolean(true)),
              HasSubstr(text({0x08, 1, 0x10, 0, 0x1A, 7, 0x0A, 5, 0x1A, 3, 0x0A, 1, 1})));
  EXPECT_THAT(model_with(Value::scalar(DataType::kInt32, std::int64_t{300})),
              HasSubstr(text({0x08, 23, 0x10, 0, 0x1A, 8, 0x0A, 6, 0x12, 4, 0x0A, 2, 0xAC, 2})));
  EXPECT_THAT(model_with({{DataType::kInt16}, std::vector<std::int64_t>{5}}),
              HasSubstr(text({0x08, 22, 0x10, 0, 0x1A, 7, 0x0A, 5, 0x12, 3, 0x0A, 1, 5})));
  EXPECT_THAT(model_with({{DataType::kUInt64}, std::vector<std::int64_t>{64}}),
              HasSubstr(text({0x08, 34, 0x10, 0, 0x1A, 7, 0x0A, 5, 0x2A, 3, 0x0A, 1, 64})));
  EXPECT_THAT(
      model_with(Value::scalar(DataType::kFloat32, 1.0)),
      HasSubstr(text({0x08, 11, 0x10, 0, 0x1A, 10, 0x0A, 8, 0x0A, 6, 0x0A, 4, 0, 0, 0x80, 0x3F})));
  // 1.5 is 0x3E00 in FP16, lowest byte first.
  EXPECT_THAT(model_with(Value::scalar(DataType::kFloat16, 1.5)),
              HasSubstr(text({0x08, 10, 0x10, 0, 0x1A, 8, 0x0A, 6, 0x3A, 4, 0x0A, 2, 0, 0x3E})));
  EXPECT_THAT(model_with({{DataType::kInt8}, std::vector<std::int64_t>{-1}}),
              HasSubstr(text({0x08, 21, 0x10, 0, 0x1A, 7, 0x0A, 5, 0x3A, 3, 0x0A, 1, 0xFF})));
  EXPECT_THAT(
      model_with({{DataType::kUInt32}, std::vector<std::int64_t>{0x01020304}}),
      HasSubstr(text({0x08, 33, 0x10, 0, 0x1A, 10, 0x0A, 8, 0x3A, 6, 0x0A, 4, 4, 3, 2, 1})));
}

TEST(MlModel, PacksElementsBelowAByte) {
  // 1 | 2 << 6 | 3 << 12 | 63 << 18
  EXPECT_THAT(model_with({{DataType::kUInt6, {4}}, std::vector<std::int64_t>{1, 2, 3, 63}}),
              HasSubstr(text({0x3A, 5, 0x0A, 3, 0x81, 0x30, 0xFC})));
  // -1 and 3 in four bits: 0xF | 3 << 4
  EXPECT_THAT(model_with({{DataType::kInt4, {2}}, std::vector<std::int64_t>{-1, 3}}),
              HasSubstr(text({0x3A, 3, 0x0A, 1, 0x3F})));
}

TEST(MlModel, NamesThePackagesWeightFile) {
  // blobFileValue {fileName, offset}, whatever the text calls the file.
  const std::string blob =
      text({0x2A, 35, 0x0A, 30}) + "@model_path/weights/weight.bin" + text({0x10, 0xC0, 0x02});
  EXPECT_THAT(model_with({{DataType::kFloat16, {2}}, BlobReference{"other.bin", 320}}),
              HasSubstr(blob));
}

TEST(MlModel, WritesTuplesAsSeveralBindings) {
  Program program = relu_program();
  program.functions[0].statements[0].arguments = {{"values", std::vector<std::string>{"x", "z"}}};
  EXPECT_THAT(to_ml_model(program, {}),
              HasSubstr("values" + text({0x12, 10, 0x0A, 3, 0x0A, 1, 'x', 0x0A, 3, 0x0A, 1, 'z'})));
}

TEST(MlModel, IsTheSameForTheSameText) {
  const auto model = [] { return to_ml_model(parse_program(kExampleText, "test"), {}); };
  EXPECT_EQ(model(), model());
  EXPECT_TRUE(has_weights(parse_program(kExampleText, "test")));
  EXPECT_FALSE(has_weights(relu_program()));
}

TEST(MlModel, RefusesWhatAPackageCannotSay) {
  const auto refusal = [](const auto& change) {
    Program program = relu_program();
    change(program);
    const Error error = error_of([&] { to_ml_model(program, {}); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    return std::string(error.what());
  };
  EXPECT_THAT(refusal([](Program& p) { p.functions.clear(); }), HasSubstr("expected main alone"));
  EXPECT_THAT(refusal([](Program& p) { p.functions[0].name = "f"; }),
              HasSubstr("functions f, expected main alone"));
  EXPECT_THAT(refusal([](Program& p) { p.functions.push_back(p.functions[0]); }),
              HasSubstr("functions main main, expected main alone"));
  EXPECT_THAT(refusal([](Program& p) { p.functions[0].opset = "ios3"; }),
              HasSubstr("main: opset ios3, expected"));
  EXPECT_THAT(refusal([](Program& p) { p.functions[0].outputs = {"z"}; }),
              HasSubstr("an output that no statement defines"));
  EXPECT_THAT(refusal([](Program& p) {
                p.functions[0].inputs[0].type = {DataType::kBool, {2}};
              }),
              HasSubstr("x: an input or output tensor<bool, [2]>, expected"));
  EXPECT_THAT(refusal([](Program& p) { p.functions[0].inputs[0].type.shape = {}; }),
              HasSubstr("x: an input or output fp16, expected a tensor"));
  EXPECT_THAT(refusal([](Program& p) {
                const ValueType type{DataType::kFloat16, {2}};
                p.functions[0].statements[0].arguments = {
                    {"x", Value(type, BlobReference{"a.bin", 64})},
                    {"y", Value(type, BlobReference{"b.bin", 64})}};
              }),
              HasSubstr("b.bin: a second weight file beside a.bin"));
}

}  // namespace
}  // namespace clefkit::mil
