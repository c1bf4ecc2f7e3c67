#include "clefkit/eval/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clefkit {
namespace {

using testing::ElementsAre;

// Two skills, and questions of none.
DataSet made_set() {
  const std::string refund = R"({"type": "noul"})";
  const std::string team = R"({"type": "choice", "criteria": {"billing": null, "sales": null}})";
  const std::string anger = R"({"type": "score", "criteria": ["calm", "annoyed", "angry"]})";
  return parse_data_set(
      R"({"name": "a", "state": 1, "questions": {"r": )" + refund + R"(, "t": )" + team +
          R"(}, "expected": {"r": true, "t": "sales"}, "skills": {"r": "refund"}})" + "\n" +
          R"({"name": "b", "state": 2, "questions": {"x": )" + refund + R"(, "t": )" + team +
          R"(}, "expected": {"x": false, "t": "sales"}, "skills": {"x": "refund"}})" + "\n" +
          R"({"state": 3, "questions": {"s": )" + anger + R"(, "t": )" + team +
          R"(}, "expected": {"s": 2}, "skills": {"s": "anger"}})",
      "set.jsonl");
}

const Probabilities kFound{{{0.9, 0.1}, {0.6, 0.4}},    // r rightly, t wrongly
                           {{0.7, 0.3}, {0.2, 0.8}},    // x wrongly, t rightly
                           {{0, 0.25, 0.75}, {1, 0}}};  // s rightly, nothing is expected of t

TEST(Evaluation, CountsByTypeAndGroup) {
  const DataSet set = made_set();
  const Evaluation result = evaluate(set, kFound, std::nullopt, std::nullopt);
  EXPECT_EQ(result.requests, 3u);
  EXPECT_EQ(result.questions, 6u);
  EXPECT_EQ(result.whole.metrics.count, 5u);
  EXPECT_DOUBLE_EQ(result.whole.metrics.accuracy, 0.6);
  // One of the two refunds, both of t's, the one score.
  EXPECT_DOUBLE_EQ(result.whole.majority, 0.8);
  // refund: "true" has F1 2/3, "false" 0. t: "billing" 0, "sales" 2/3. anger: 1.
  EXPECT_NEAR(result.whole.macro_f1, (1.0 / 3 + 1.0 / 3 + 1) / 3, 1e-12);
  EXPECT_EQ(result.whole.expectations.count, 5u);
  EXPECT_EQ(result.whole.expectations.met, 3u);
  EXPECT_FALSE(result.drift);

  ASSERT_EQ(result.types.size(), 3u);
  EXPECT_EQ(result.types[0].name, "noul");
  EXPECT_EQ(result.types[0].metrics.count, 2u);
  EXPECT_EQ(result.types[2].name, "score");
  EXPECT_DOUBLE_EQ(result.types[2].metrics.score_error.value(), 0.25);

  ASSERT_EQ(result.groups.size(), 3u);
  const QuestionGroup& refund = result.groups[0];
  EXPECT_EQ(refund.summary.name, "refund");
  EXPECT_TRUE(refund.is_skill);
  EXPECT_EQ(refund.type, "noul");
  EXPECT_DOUBLE_EQ(refund.summary.metrics.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(refund.summary.majority, 0.5);
  EXPECT_THAT(refund.confusions, ElementsAre(ElementsAre(1u, 0u), ElementsAre(1u, 0u)));
  const QuestionGroup& team = result.groups[1];
  EXPECT_EQ(team.summary.name, "t");
  EXPECT_FALSE(team.is_skill);
  EXPECT_EQ(team.majority_class, "sales");
  EXPECT_EQ(result.groups[2].summary.name, "anger");

  ASSERT_EQ(result.missed.size(), 2u);
  EXPECT_EQ(result.missed[0].line, 1u);
  EXPECT_EQ(result.missed[0].name, "a");
  EXPECT_EQ(result.missed[0].question, "t");
  EXPECT_EQ(result.missed[0].expected, "sales");
  EXPECT_EQ(result.missed[0].chosen, "billing");
  EXPECT_DOUBLE_EQ(result.missed[0].probability, 0.4);
}

TEST(Evaluation, CountsSkillsThatAreNotListedApart) {
  const DataSet set = made_set();
  const Evaluation result =
      evaluate(set, kFound, std::nullopt, std::set<std::string>{"anger", "colour"});
  EXPECT_EQ(result.whole.metrics.count, 3u);  // Without skill, questions always count.
  EXPECT_EQ(result.whole.expectations.met, 2u);
  EXPECT_EQ(result.unlisted.count, 2u);
  EXPECT_EQ(result.unlisted.met, 1u);
  EXPECT_EQ(result.types.size(), 2u);
  ASSERT_EQ(result.groups.size(), 3u);
  EXPECT_FALSE(result.groups[0].is_listed);
  EXPECT_TRUE(result.groups[1].is_listed);
  EXPECT_TRUE(result.groups[2].is_listed);
  EXPECT_EQ(result.missed.size(), 2u);
}

TEST(Evaluation, ComparesWithOtherAnswers) {
  const DataSet set = made_set();
  Probabilities other = kFound;
  other[0][1] = {0.45, 0.55};   // Rightly, unlike the model.
  other[2][0] = {0, 0.5, 0.5};  // A tie goes to the first: wrongly, unlike the model.
  other[2][1] = {0.9, 0.1};
  const Evaluation result = evaluate(set, kFound, other, std::nullopt);
  EXPECT_EQ(result.whole.expectations.met, 3u);
  EXPECT_EQ(result.whole.expectations.met_against, 3u);
  EXPECT_EQ(result.whole.expectations.met_by_both, 2u);
  ASSERT_TRUE(result.drift);
  EXPECT_EQ(result.drift->questions, 6u);  // Those that expect nothing too.
  EXPECT_EQ(result.drift->agreeing(), 4u);
  EXPECT_DOUBLE_EQ(result.drift->largest, 0.25);
}

TEST(Evaluation, QuestionsOfOneIdAndTwoTypesAreTwoGroups) {
  const DataSet set = parse_data_set(
      R"({"state": 1, "questions": {"q": {"type": "noul"}}, "expected": {"q": true}})"
      "\n"
      R"({"state": 1, "questions": {"q": {"type": "score", "criteria": ["a"]}}, "expected": {"q": 0}})",
      "set");
  const Evaluation result = evaluate(set, {{{1, 0}}, {{1}}}, std::nullopt, std::nullopt);
  ASSERT_EQ(result.groups.size(), 2u);
  EXPECT_EQ(result.groups[0].type, "noul");
  EXPECT_EQ(result.groups[1].type, "score");
}

TEST(Evaluation, OfAnswersNobodyExpectsIsTheirDrift) {
  const DataSet set =
      parse_data_set(R"({"state": 1, "questions": {"q": {"type": "noul"}}})", "set");
  const Probabilities found{{{0.5, 0.5}}};
  const Evaluation result = evaluate(set, found, found, std::nullopt);
  EXPECT_EQ(result.whole.metrics.count, 0u);
  EXPECT_TRUE(result.groups.empty());
  EXPECT_EQ(result.drift->agreeing(), 1u);
}

TEST(Evaluation, HasNoMatrixOfTooManyClasses) {
  std::string lines;
  Probabilities found;
  for (int i = 0; i < 21; ++i) {
    lines += fmt::format(
        R"({{"state": 1, "questions": {{"q": {{"type": "choice", "criteria": {{"o{0}": null}}}}}}, "expected": {{"q": "o{0}"}}}})"
        "\n",
        i);
    found.push_back({{1}});
  }
  const Evaluation result =
      evaluate(parse_data_set(lines, "set"), found, std::nullopt, std::nullopt);
  ASSERT_EQ(result.groups.size(), 1u);
  EXPECT_EQ(result.groups[0].classes.size(), 21u);
  EXPECT_TRUE(result.groups[0].confusions.empty());
  EXPECT_TRUE(
      evaluation_to_json(result, 0).find("groups")->items()[0].find("confusion")->is_null());
}

TEST(Evaluation, IsWrittenAsTheManualSays) {
  const DataSet set = made_set();
  const Json json = evaluation_to_json(evaluate(set, kFound, kFound, std::nullopt), 0.02);
  EXPECT_EQ(json.find("questions")->as_uint64(), 6u);
  EXPECT_EQ(json.find("all")->find("accuracy")->as_double(), 0.6);
  EXPECT_EQ(to_string(*json.find("all")->find("expectations")),
            R"({"count":5,"met":3,"met_against":3,"met_by_both":3})");
  EXPECT_EQ(json.find("types")->find("noul")->find("count")->as_uint64(), 2u);
  const Json& refund = json.find("groups")->items()[0];
  EXPECT_EQ(refund.find("name")->string(), "refund");
  EXPECT_EQ(to_string(*refund.find("confusion")),
            R"({"classes":["true","false"],"counts":[[1,0],[1,0]]})");
  EXPECT_EQ(json.find("drift")->find("agreeing")->as_uint64(), 6u);
  EXPECT_EQ(json.find("missed")->items()[1].find("chosen")->string(), "true");
}

}  // namespace
}  // namespace clefkit
