#include "clefkit/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace clefkit {
namespace {

Json parse(std::string_view text, JsonLimits limits = {}) {
  return parse_json(text, "here", limits);
}

std::string message_of(std::string_view text, JsonLimits limits = {}) {
  try {
    parse(text, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, KeepsNumbersAsWritten) {
  const Json value = parse("[123456789012345678901234567890, -0, 1250.0, 1E+2, 1e999]");
  EXPECT_EQ(to_string(value), "[123456789012345678901234567890,-0,1250.0,1E+2,1e999]");
  EXPECT_EQ(value.items()[0].as_int64(), std::nullopt);
  EXPECT_EQ(value.items()[3].as_double(), 100.0);
  EXPECT_TRUE(std::isinf(*value.items()[4].as_double()));
}

TEST(Json, KeepsIntegersOfFiveHundredDigits) {
  const std::string digits(500, '7');
  EXPECT_EQ(to_string(parse(digits)), digits);
}

TEST(Json, DuplicateKeyKeepsItsPlaceAndItsLastValue) {
  const JsonLimits last_wins{.duplicates = DuplicateKeys::kLastWins};
  EXPECT_EQ(to_string(parse(R"({"a":1,"b":2,"a":3})", last_wins)), R"({"a":3,"b":2})");
  EXPECT_EQ(message_of(R"({"a":1,"a":1})"), "here: the key \"a\" stands twice in one object");
}

TEST(Json, DuplicateKeysMayBeAllowedByPlace) {
  const JsonLimits limits{.last_wins_at = [](std::span<const std::string_view> path) {
    return path.size() == 3 && path[0] == "a" && path[1] == "[]" && path[2] == "b";
  }};
  EXPECT_EQ(to_string(parse(R"({"a":[{"b":{"x":[{"k":1,"k":2}],"x":3}}]})", limits)),
            R"({"a":[{"b":{"x":3}}]})");
  EXPECT_EQ(message_of(R"({"a":[{"c":{"x":1,"x":2}}]})", limits),
            "here: the key \"x\" stands twice in one object");
  EXPECT_EQ(message_of(R"({"a":[{"b":{}}],"a":1})", limits),
            "here: the key \"a\" stands twice in one object");
}

TEST(Json, RefusesDepthBeyondTheLimitWithoutRecursion) {
  EXPECT_EQ(message_of(std::string(200000, '[')), "here: JSON nested more than 64 deep");
  const std::string allowed = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(to_string(parse(allowed)), allowed);
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\" 1}", "01", "+1", "NaN", "nul", "\"\x01\"",
                           "\"\\x\"", "\"\\ud800\"", "\"\xff\"", "\"\xc0\x80\"", "1 2", "'a'"}) {
    EXPECT_NE(message_of(text), "no error") << text;
  }
}

TEST(Json, NamesThePlaceAndWhatWasExpected) {
  EXPECT_EQ(message_of("{\"a\" 1}"), "here: not valid JSON at byte 5: found '1', expected ':'");
  EXPECT_EQ(message_of("[1, "),
            "here: not valid JSON at byte 4: found the end of the text, expected a value");
  EXPECT_EQ(message_of("\"\xff\""),
            "here: not valid JSON at byte 1: found the byte 0xff, expected valid UTF-8");
}

TEST(Json, RefusesTextOverTheByteLimit) {
  EXPECT_EQ(message_of("[1,2]", {.bytes = 4}), "here: 5 bytes of JSON, expected at most 4");
}

TEST(Json, DecodesEscapesAndEscapesOnlyWhatItMust) {
  EXPECT_EQ(parse(R"("\u00e9\ud83d\ude00\/\u0001\u007f\n")").string(), "é😀/\x01\x7f\n");
  EXPECT_EQ(to_string(Json("é/\"\\\x01\x7f\n")), "\"é/\\\"\\\\\\u0001\x7f\\n\"");
}

TEST(Json, IntegersHaveARange) {
  EXPECT_EQ(parse("9223372036854775807").as_int64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse("9223372036854775808").as_int64(), std::nullopt);
  EXPECT_EQ(parse("-1").as_uint64(), std::nullopt);
  EXPECT_EQ(parse("1.0").as_int64(), std::nullopt);
}

// Expected texts are Python 3's repr() of the same literals.
TEST(PythonRepr, MatchesPython) {
  EXPECT_EQ(python_repr(1250.0), "1250.0");
  EXPECT_EQ(python_repr(-0.0), "-0.0");
  EXPECT_EQ(python_repr(0.0001), "0.0001");
  EXPECT_EQ(python_repr(1e-5), "1e-05");
  EXPECT_EQ(python_repr(1.5e-7), "1.5e-07");
  EXPECT_EQ(python_repr(1e15), "1000000000000000.0");
  EXPECT_EQ(python_repr(1e16), "1e+16");
  EXPECT_EQ(python_repr(1.2345678901234568e22), "1.2345678901234568e+22");
  EXPECT_EQ(python_repr(5e-324), "5e-324");
  EXPECT_EQ(python_repr(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(python_repr(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(python_repr(9007199254740993.0), "9007199254740992.0");
}

TEST(Json, LimitsTheNumberOfValues) {
  const auto accepts = [](const char* text) {
    try {
      parse_json(text, "t", {.values = 4});
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(accepts(R"({"a":[1,2]})"));
  EXPECT_FALSE(accepts(R"({"a":[1,2,3]})"));
  EXPECT_FALSE(accepts("[[],[],[],[]]"));
}

TEST(Json, PrettyPrintsWithTwoSpaces) {
  EXPECT_EQ(to_pretty_string(parse(R"({"a":[1,{}],"b":[]})")),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

}  // namespace
}  // namespace clefkit
