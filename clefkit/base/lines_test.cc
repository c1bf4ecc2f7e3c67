#include "clefkit/base/lines.h"

#include <gtest/gtest.h>

#include "clefkit/base/error_of.h"

namespace clefkit {
namespace {

TEST(FilledLines, CountsBlankLinesAndGivesTheOthers) {
  const std::vector<Line> lines = filled_lines("a\r\n\n \t\r\n b \r\nc");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 1u);
  EXPECT_EQ(lines[0].text, "a");
  EXPECT_EQ(lines[1].number, 4u);
  EXPECT_EQ(lines[1].text, " b ");
  EXPECT_EQ(lines[2].number, 5u);
  EXPECT_EQ(lines[2].text, "c");
}

TEST(FilledLines, OfNothingAreNone) {
  EXPECT_TRUE(filled_lines("").empty());
  EXPECT_TRUE(filled_lines("\n\r\n \n").empty());
}

std::string place_of(const std::string& place, const std::string& where) {
  return error_of(
             [&] { at_place(place, [&] { throw Error(ErrorCode::kTooLarge, where, "wrong"); }); })
      .where();
}

TEST(AtPlace, StandsBeforeAnErrorsOwnPlaceOnce) {
  EXPECT_EQ(place_of("f line 7", "images[0]"), "f line 7: images[0]");
  EXPECT_EQ(place_of("f line 7", "f line 7"), "f line 7");
  EXPECT_EQ(place_of("f line 7", ""), "f line 7");
  EXPECT_EQ(place_of("", "images[0]"), "images[0]");
  const Error error =
      error_of([] { at_place("f", [] { throw Error(ErrorCode::kTooLarge, "x", "long"); }); });
  EXPECT_EQ(error.code(), ErrorCode::kTooLarge);
  EXPECT_EQ(error.message(), "long");
}

TEST(AtPlace, GivesWhatTheFunctionGives) {
  EXPECT_EQ(at_place("f", [] { return 3; }), 3);
}

}  // namespace
}  // namespace clefkit
