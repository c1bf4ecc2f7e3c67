#include "clefkit/text/pattern_splitter.h"

#include <gmock/gmock.h>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kPatternA =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> pieces(std::string_view pattern, std::string_view text) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (const std::size_t end : PatternSplitter(pattern, "here").piece_ends(text)) {
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return out;
}

Error error_of(std::string_view pattern, std::string_view text = "") {
  try {
    PatternSplitter(pattern, "here").piece_ends(text);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "", "no error");
}

TEST(PatternSplitter, SplitsProseAsTheFirstAlternativeThatMatches) {
  EXPECT_THAT(pieces(kPatternA, "It's  12 o'clock!\n\n ok "),
              ElementsAre("It", "'s", " ", " ", "1", "2", " o", "'clock", "!\n\n", " ok", " "));
}

TEST(PatternSplitter, FoldsCaseByUnicode) {
  EXPECT_THAT(pieces(kPatternA, "x'S'ſ"), ElementsAre("x", "'S", "'ſ"));
}

TEST(PatternSplitter, TakesWhiteSpaceAsUnicodeDefinesIt) {
  // U+180E is no White_Space, U+0085 and U+3000 are; U+001C is not either.
  EXPECT_THAT(pieces(R"(\s+)",
                     "a\u180Eb\u0085\u3000c\x1C"
                     "d"),
              ElementsAre("a\u180Eb", "\u0085\u3000",
                          "c\x1C"
                          "d"));
  EXPECT_THAT(pieces(R"(\S+)", "a\u180E\u2028\u2029b"),
              ElementsAre("a\u180E", "\u2028\u2029", "b"));
  EXPECT_THAT(pieces(R"([\S]+)", "a\u180E\u2028\u2029b"),
              ElementsAre("a\u180E", "\u2028\u2029", "b"));
}

TEST(PatternSplitter, KnowsLettersAndDigitsUpToUnicode16) {
  // U+31350 came with 15.0, U+2EBF0 with 15.1, U+1C89 and the digit U+10D40 with 16.0.
  EXPECT_THAT(pieces(kPatternA, "\u4E00\U00031350\U0002EBF0\u1C89"),
              ElementsAre("\u4E00\U00031350\U0002EBF0\u1C89"));
  EXPECT_THAT(pieces(kPatternA, "\U00010D40\U00010D41"), ElementsAre("\U00010D40", "\U00010D41"));
  EXPECT_THAT(pieces(R"(\p{M}+)", "a\u0301\u0897b"), ElementsAre("a", "\u0301\u0897", "b"));
}

TEST(PatternSplitter, KeepsTextBetweenMatches) {
  EXPECT_THAT(pieces("[0-9]+", "ab12cd3"), ElementsAre("ab", "12", "cd", "3"));
  EXPECT_THAT(pieces("z", "ab"), ElementsAre("ab"));
  EXPECT_THAT(pieces("z", ""), ElementsAre());
}

TEST(PatternSplitter, EmptyMatchesSplitAndDoNotStop) {
  EXPECT_THAT(pieces("x*", "aéxxb"), ElementsAre("a", "é", "xx", "b"));
  EXPECT_THAT(pieces("(?=b)", "abab"), ElementsAre("a", "ba", "b"));
}

TEST(PatternSplitter, LeavesOtherEscapesAndClassesAsTheyAre) {
  EXPECT_THAT(pieces(R"([]\]a]+)", "x]a]y"), ElementsAre("x", "]a]", "y"));
  EXPECT_THAT(pieces(R"([^]\s]+)", "x]y z"), ElementsAre("x", "]", "y", " ", "z"));
  EXPECT_THAT(pieces(R"([[:digit:]x]+)", "a1x"), ElementsAre("a", "1x"));
  EXPECT_THAT(pieces(R"(\\s)", R"(a\sb)"), ElementsAre("a", R"(\s)", "b"));
  EXPECT_THAT(pieces(R"(\p{N}{1,3})", "12345"), ElementsAre("123", "45"));
}

TEST(PatternSplitter, MatchesRunsOfAMegabyte) {
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(PatternSplitter(kPatternA, "here").piece_ends(spaces).size(), 1u);
  EXPECT_EQ(PatternSplitter(kPatternA, "here").piece_ends(spaces + "a").size(), 2u);
  EXPECT_EQ(PatternSplitter(kPatternA, "here").piece_ends(std::string(1'000'000, '!')).size(), 1u);
}

TEST(PatternSplitter, RefusesWhatIsNoRegularExpression) {
  for (const char* pattern : {"(", "[a", "a{2,1}", R"(\p{Nonsense})", R"(a\)", R"(\C)"}) {
    const Error error = error_of(pattern);
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData) << pattern;
    EXPECT_THAT(error.what(), HasSubstr("here: not a regular expression: ")) << pattern;
  }
  EXPECT_EQ(error_of(std::string(100'000, 'a')).code(), ErrorCode::kCorruptData);
}

TEST(PatternSplitter, RefusesSyntaxThatTheReferenceReadsDifferently) {
  for (const char* pattern : {"[a[bc]]", "[a-z&&[^b]]", R"(\h)", R"(\H)", R"(\Qa\E)"}) {
    EXPECT_EQ(error_of(pattern).code(), ErrorCode::kUnsupported) << pattern;
  }
}

TEST(PatternSplitter, GivesUpOnBacktrackingWithoutEnd) {
  const Error error = error_of("(a+a+)+[bc]", std::string(200, 'a'));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("here: the pattern cannot split the text at byte 0: "));
}

}  // namespace
}  // namespace clefkit
