#include "clefkit/eval/data_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/base/error_of.h"

namespace clefkit {
namespace {

constexpr std::string_view kQuestions = R"("state": "x", "questions": {
    "refund": {"type": "noul"},
    "team": {"type": "choice", "criteria": {"billing": null, "tech support": null, "sales": null}},
    "anger": {"type": "score", "criteria": ["calm", "annoyed", "angry"]}})";

// One line with those questions and what is given beside them.
std::string line_with(const std::string& members) {
  std::string line = fmt::format("{{{}{}}}", kQuestions, members.empty() ? "" : ", " + members);
  std::erase(line, '\n');
  return line;
}

DataSet parsed(const std::string& text) { return parse_data_set(text, "set.jsonl"); }

std::string message_of(const std::string& text) {
  const Error error = error_of([&] { parsed(text); });
  EXPECT_TRUE(error.code() == ErrorCode::kInvalidArgument || error.message() == "no error");
  return error.what();
}

TEST(DataSet, ReadsWhatIsExpected) {
  const std::string full =
      line_with(R"("name": "first", "skills": {"refund": "refunds", "anger": null}, )"
                R"("expected": {"anger": 2, "refund": true, "team": "tech support"})");
  const std::string some = line_with(R"("expected": {"refund": false, "team": null})");
  const std::string nulls = line_with(R"("expected": null, "skills": null, "name": null)");
  const DataSet set =
      parsed(fmt::format("\n{}\r\n  \t\n{}\n{}\n{}", full, some, line_with(""), nulls));
  ASSERT_EQ(set.cases.size(), 4u);
  EXPECT_EQ(set.source, "set.jsonl");
  const Case& first = set.cases[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.line, 2u);
  EXPECT_THAT(first.expected, testing::ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(first.skills, testing::ElementsAre("refunds", "", ""));
  EXPECT_EQ(set.cases[1].line, 4u);
  EXPECT_THAT(set.cases[1].expected, testing::ElementsAre(1u, std::nullopt, std::nullopt));
  EXPECT_THAT(set.cases[2].expected, testing::Each(std::nullopt));
  EXPECT_THAT(set.cases[3].expected, testing::Each(std::nullopt));
  EXPECT_EQ(set.question_count(), 12u);
  EXPECT_EQ(set.expectation_count(), 4u);
  EXPECT_EQ(set.requests[0].place, "set.jsonl line 2 (\"first\")");
  EXPECT_EQ(set.requests[1].place, "set.jsonl line 4");
  EXPECT_EQ(set.requests[0].questions[1].options[1].id, "tech support");
}

TEST(DataSet, RefusesAnswersThatTheQuestionDoesNotHave) {
  const auto message = [](const std::string& expected) {
    return message_of(line_with("") + "\n" +
                      line_with(fmt::format(R"("expected": {{{}}})", expected)));
  };
  const std::string at = "set.jsonl line 2: expected.";
  const std::string team = "expected one of billing, \"tech support\", sales";
  EXPECT_EQ(message(R"("team": "bill")"), at + "team: \"bill\", " + team);
  EXPECT_EQ(message(R"("team": 0)"), at + "team: 0, " + team);
  EXPECT_EQ(message(R"("team": true)"), at + "team: true, " + team);
  EXPECT_EQ(message(R"("refund": "true")"), at + "refund: \"true\", expected true or false");
  EXPECT_EQ(message(R"("refund": 1)"), at + "refund: 1, expected true or false");
  const std::string level = "expected a level, a whole number from 0 to 2";
  EXPECT_EQ(message(R"("anger": 3)"), at + "anger: 3, " + level);
  EXPECT_EQ(message(R"("anger": -1)"), at + "anger: -1, " + level);
  EXPECT_EQ(message(R"("anger": 1.5)"), at + "anger: 1.5, " + level);
  EXPECT_EQ(message(R"("anger": 1.0)"), at + "anger: 1.0, " + level);
  EXPECT_EQ(message(R"("anger": "calm")"), at + "anger: \"calm\", " + level);
  EXPECT_EQ(message(R"("anger": "1")"), at + "anger: \"1\", " + level);
  EXPECT_EQ(message(R"("anger": [1])"), at + "anger: an array, " + level);
  EXPECT_EQ(message(R"("a b": true)"),
            at + "\"a b\": no question of that id, expected one of the line's questions");
}

TEST(DataSet, ShowsSomeOfManyOptions) {
  std::string options;
  for (int i = 0; i < 20; ++i) options += fmt::format("{}\"o{}\": null", i == 0 ? "" : ", ", i);
  EXPECT_EQ(
      message_of(R"({"state": 1, "questions": {"q": {"type": "choice", "criteria": {)" + options +
                 R"(}}}, "expected": {"q": "x"}})"),
      "set.jsonl line 1: expected.q: \"x\", expected one of o0, o1, o2, o3, o4, o5, o6, o7 and "
      "12 others");
}

TEST(DataSet, RefusesMembersOfTheWrongKind) {
  const std::string at = "set.jsonl line 1: ";
  EXPECT_EQ(message_of(line_with(R"("expected": [true])")),
            at + "expected: an array, expected an object by question");
  EXPECT_EQ(message_of(line_with(R"("skills": "refund")")),
            at + "skills: \"refund\", expected an object by question");
  EXPECT_EQ(message_of(line_with(R"("skills": {"refund": true})")),
            at + "skills.refund: true, expected the name of a skill");
  EXPECT_EQ(message_of(line_with(R"("skills": {"refund": ""})")),
            at + "skills.refund: \"\", expected the name of a skill");
  EXPECT_EQ(message_of(line_with(R"("skills": {"x": "refund"})")),
            at + "skills.x: no question of that id, expected one of the line's questions");
  EXPECT_EQ(message_of(line_with(R"("name": 3)")), at + "name: 3, expected a string");
  EXPECT_EQ(message_of("[]"), "set.jsonl line 1: an array, expected an object");
  EXPECT_THAT(message_of("{\n"), testing::StartsWith("set.jsonl line 1: not valid JSON"));
  EXPECT_EQ(message_of("\n \n"), "set.jsonl: no requests, expected one a line");
  EXPECT_EQ(message_of(R"({"questions": {"q": {"type": "noul"}}})"),
            at + "state: missing, expected any JSON value");
}

// In members that nobody reads the last one wins; two answers to one question are a mistake.
TEST(DataSet, RefusesTwoAnswersToOneQuestion) {
  for (const std::string member : {"expected", "skills"}) {
    EXPECT_THAT(
        message_of(line_with(fmt::format(R"("{}": {{"refund": true, "refund": false}})", member))),
        testing::AllOf(testing::StartsWith("set.jsonl line 1: "), testing::HasSubstr("refund")));
  }
  EXPECT_THAT(message_of(line_with(R"("expected": {}, "expected": {})")),
              testing::HasSubstr("expected"));
  EXPECT_EQ(message_of(line_with(R"("note": {"a": 1, "a": 2})")), "no error");
}

}  // namespace
}  // namespace clefkit
