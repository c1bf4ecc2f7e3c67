#include "clefkit/cli/question_flags.h"

#include <gtest/gtest.h>

#include "clefkit/base/error.h"

namespace clefkit::cli {
namespace {

std::string text_of(const Json::Member& member) {
  return member.first + " " + to_string(member.second);
}

TEST(QuestionFlags, NoulTakesTheRestAsInstructions) {
  EXPECT_EQ(text_of(parse_noul_flag("refund=Is x=1, or: y|z?")),
            R"(refund {"type":"noul","instructions":"Is x=1, or: y|z?"})");
  EXPECT_EQ(text_of(parse_noul_flag("refund")), R"(refund {"type":"noul"})");
}

TEST(QuestionFlags, ChoiceTakesPlainOptions) {
  EXPECT_EQ(text_of(parse_choice_flag("team=billing, technical,sales")),
            R"(team {"type":"choice","criteria":{"billing":null,"technical":null,"sales":null}})");
}

TEST(QuestionFlags, ChoiceTakesInstructionsAndDescriptions) {
  EXPECT_EQ(text_of(parse_choice_flag("team: Who?=billing: Invoices, refunds|sales|a\\|b: c:d")),
            R"(team {"type":"choice","instructions":"Who?","criteria":)"
            R"({"billing":"Invoices, refunds","sales":null,"a|b":"c:d"}})");
}

TEST(QuestionFlags, ScoreTakesLevelsInOrder) {
  EXPECT_EQ(text_of(parse_score_flag("anger: How angry?=calm,annoyed\\, a bit,angry")),
            R"(anger {"type":"score","instructions":"How angry?",)"
            R"("criteria":["calm","annoyed, a bit","angry"]})");
}

TEST(QuestionFlags, RefusesWhatHasNoIdOrAnEmptyOption) {
  EXPECT_THROW(parse_noul_flag("=x"), Error);
  EXPECT_THROW(parse_choice_flag("team"), Error);
  EXPECT_THROW(parse_choice_flag("=a,b"), Error);
  EXPECT_THROW(parse_choice_flag("team=a,,b"), Error);
  EXPECT_THROW(parse_choice_flag("team=a,b,a"), Error);
  EXPECT_THROW(parse_score_flag("s="), Error);
}

}  // namespace
}  // namespace clefkit::cli
