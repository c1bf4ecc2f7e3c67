#include "clefkit/questions/canonical_json.h"

#include <gtest/gtest.h>

namespace clefkit {
namespace {

std::string canonical(std::string_view json) {
  return canonical_json(parse_json(json, "here", {.duplicates = DuplicateKeys::kLastWins}));
}

// Expected texts are what Python 3's json.dumps(json.loads(text), ensure_ascii=False,
// separators=(",", ":"), sort_keys=True) prints.
TEST(CanonicalJson, PrintsScalarsAsPythonDoes) {
  EXPECT_EQ(canonical("null"), "null");
  EXPECT_EQ(canonical("true"), "true");
  EXPECT_EQ(canonical(R"("a/\u0041\"\\\b\f\n\r\t\u0000\u001f\u007f\u2028é😀")"),
            "\"a/A\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\u2028é😀\"");
}

TEST(CanonicalJson, PrintsNumbersAsPythonDoes) {
  EXPECT_EQ(canonical("[0,-0,-7,123456789012345678901234567890,9007199254740993]"),
            "[0,0,-7,123456789012345678901234567890,9007199254740993]");
  EXPECT_EQ(canonical("[1250.0,-0.0,0.0001,0.00001,1.5e-7,5e-324,4e-324,1e3,1E+2,12e-1]"),
            "[1250.0,-0.0,0.0001,1e-05,1.5e-07,5e-324,5e-324,1000.0,100.0,1.2]");
  EXPECT_EQ(canonical("[1e15,1e16,123456789012345678.0,1e22,1e999,-1e999,1e-999,-1e-999]"),
            "[1000000000000000.0,1e+16,1.2345678901234568e+17,1e+22,Infinity,-Infinity,0.0,-0.0]");
  EXPECT_EQ(canonical("[0.1,0.30000000000000004,9007199254740993.0,1.7976931348623157e308]"),
            "[0.1,0.30000000000000004,9007199254740992.0,1.7976931348623157e+308]");
}

TEST(CanonicalJson, KeepsIntegersBeyondPythonsOwnLimitOfDigits) {
  const std::string digits = "-1" + std::string(5000, '0');
  EXPECT_EQ(canonical(digits), digits);
}

TEST(CanonicalJson, SortsKeysByCodePointAtEveryDepth) {
  // U+FF5E comes before U+1F600, though not in UTF-16.
  EXPECT_EQ(canonical(R"({"😀":1,"～":2,"é":3,"b":{"z":[{"y":1,"x":2}],"":0},"B":4,"aa":5,"a":6})"),
            R"({"B":4,"a":6,"aa":5,"b":{"":0,"z":[{"x":2,"y":1}]},"é":3,"～":2,"😀":1})");
  EXPECT_EQ(canonical(R"([{},[],{"a":[]}])"), R"([{},[],{"a":[]}])");
}

TEST(CanonicalJson, RepeatedKeyHasItsLastValue) {
  EXPECT_EQ(canonical(R"({"b":1,"a":2,"b":3})"), R"({"a":2,"b":3})");
}

TEST(RenderValue, LeavesStringsAsTheyAre) {
  EXPECT_EQ(render_value(Json("say \"hi\"\n")), "say \"hi\"\n");
  EXPECT_EQ(render_value(Json("")), "");
  EXPECT_EQ(render_value(Json()), "null");
  EXPECT_EQ(render_value(Json::array({"a", 1})), "[\"a\",1]");
}

}  // namespace
}  // namespace clefkit
