#include "clefkit/text/added_tokens.h"

#include <gtest/gtest.h>

namespace clefkit {
namespace {

std::string matches(const AddedTokens& tokens, std::string_view text) {
  std::string out;
  std::size_t at = 0;
  while (const auto match = tokens.find(text, at)) {
    out += std::to_string(match->id) + "@" + std::to_string(match->begin) + "-" +
           std::to_string(match->end) + " ";
    at = match->end;
  }
  return out;
}

TEST(AddedTokens, FindsTheLongestOfThoseThatStartLeftmost) {
  const AddedTokens tokens({{1, "<a"}, {2, "<a>"}, {3, "<a>b>"}, {4, "a>b"}});
  EXPECT_EQ(matches(tokens, "<a"), "1@0-2 ");
  EXPECT_EQ(matches(tokens, "<a>b"), "2@0-3 ");
  EXPECT_EQ(matches(tokens, "<a>b><a>x"), "3@0-5 2@5-8 ");
  EXPECT_EQ(matches(tokens, "xa>b<"), "4@1-4 ");
}

TEST(AddedTokens, FindsTokensAtBothEndsAndSideBySide) {
  const AddedTokens tokens({{5, "<|pad|>"}});
  EXPECT_EQ(matches(tokens, "<|pad|><|pad|> <|pad|>"), "5@0-7 5@7-14 5@15-22 ");
  EXPECT_EQ(matches(tokens, "<|pad|"), "");
  EXPECT_EQ(matches(tokens, "<<|pad|>"), "5@1-8 ");
  EXPECT_EQ(matches(tokens, ""), "");
}

TEST(AddedTokens, ComparesBytesWithoutSign) {
  const AddedTokens tokens({{1, "é"}, {2, "z"}, {3, "éz"}, {4, "éé"}});
  EXPECT_EQ(matches(tokens, "zézéééz"), "2@0-1 3@1-4 4@4-8 3@8-11 ");
}

TEST(AddedTokens, WithoutTokensFindsNothing) {
  EXPECT_EQ(matches(AddedTokens({}), "<|pad|>"), "");
  EXPECT_EQ(AddedTokens({}).id_of(""), std::nullopt);
}

TEST(AddedTokens, NamesIdsByText) {
  const AddedTokens tokens({{2, "b"}, {1, "a"}});
  EXPECT_EQ(tokens.id_of("a"), 1);
  EXPECT_EQ(tokens.id_of("b"), 2);
  EXPECT_EQ(tokens.id_of("ab"), std::nullopt);
}

}  // namespace
}  // namespace clefkit
