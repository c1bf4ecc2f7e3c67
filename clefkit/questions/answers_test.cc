#include "clefkit/questions/answers.h"

#include <gtest/gtest.h>

namespace clefkit {
namespace {

constexpr auto kChoice = QuestionType::kChoice;
constexpr auto kScore = QuestionType::kScore;

struct RuleCase {
  ConfidenceRule rule;
  double choice, score;
};

// The worked example of the API reference, section 6.
TEST(Confidence, MatchesTheWorkedExample) {
  const std::vector<double> choice{0.0505, 0.9355, 0.0140};
  const std::vector<double> score{0.0151, 0.0144, 0.2077, 0.7628};
  for (const RuleCase& expected : {RuleCase{ConfidenceRule::kPurity, 0.8169, 0.5006},
                                   RuleCase{ConfidenceRule::kTypesafe, 0.9032, 0.7182},
                                   RuleCase{ConfidenceRule::kTop, 0.9355, 0.7628},
                                   RuleCase{ConfidenceRule::kEntropy, 0.7516, 0.5258}}) {
    EXPECT_EQ(round_to_digits(confidence_of(kChoice, choice, expected.rule), 4), expected.choice);
    EXPECT_EQ(round_to_digits(confidence_of(kScore, score, expected.rule), 4), expected.score);
  }
}

TEST(Confidence, IsOneWhenThereIsNoAlternative) {
  for (const auto rule : {ConfidenceRule::kTypesafe, ConfidenceRule::kTop, ConfidenceRule::kPurity,
                          ConfidenceRule::kEntropy}) {
    EXPECT_EQ(confidence_of(kChoice, std::vector{1.0}, rule), 1);
    EXPECT_EQ(confidence_of(kScore, std::vector{1.0}, rule), 1);
    EXPECT_EQ(confidence_of(kChoice, std::vector{0.0, 1.0}, rule), 1);
    EXPECT_EQ(confidence_of(kScore, std::vector{0.0, 1.0, 0.0}, rule), 1);
  }
}

TEST(Confidence, NeverLeavesItsRange) {
  // Three float32 thirds add up to more than 1; two levels at the ends spread more than uniformly.
  const double third = 0.3333333432674408;
  const std::vector<double> even{third, third, third};
  EXPECT_EQ(confidence_of(kChoice, std::vector{0.3333, 0.3333, 0.3333}, ConfidenceRule::kTypesafe),
            0);
  EXPECT_EQ(confidence_of(kChoice, std::vector{0.3333, 0.3333, 0.3333}, ConfidenceRule::kPurity),
            0);
  EXPECT_EQ(confidence_of(kChoice, even, ConfidenceRule::kEntropy), 0);
  EXPECT_EQ(confidence_of(kScore, std::vector{0.5, 0.0, 0.5}, ConfidenceRule::kTypesafe), 0);
}

// Expected values are Python's round().
TEST(RoundToDigits, RoundsTheExactValueWithTiesToEven) {
  EXPECT_EQ(round_to_digits(2.675, 2), 2.67);
  EXPECT_EQ(round_to_digits(0.125, 2), 0.12);
  EXPECT_EQ(round_to_digits(0.375, 2), 0.38);
  EXPECT_EQ(round_to_digits(0.5, 0), 0.0);
  EXPECT_EQ(round_to_digits(1.5, 0), 2.0);
  EXPECT_EQ(round_to_digits(0.00005, 4), 0.0001);
  EXPECT_EQ(round_to_digits(0.03125, 4), 0.0312);
  EXPECT_EQ(round_to_digits(0.09375, 4), 0.0938);
  EXPECT_EQ(round_to_digits(0.1, 5000), 0.1);
  EXPECT_EQ(round_to_digits(254.99996, 4), 255.0);
}

std::vector<Question> three_questions() {
  return parse_request(R"({"state": 1, "questions": {
    "n": {"type": "noul"},
    "c": {"type": "choice", "criteria": {"z": null, "a": "first", "m": null}},
    "s": {"type": "score", "criteria": ["low", {"k": [1.50, null]}, null]}}})",
                       "here")
      .questions;
}

TEST(Answers, HaveTheReferencesKeysInItsOrder) {
  const Json answers =
      answers_to_json(three_questions(), {{0.75, 0.25}, {0.25, 0.25, 0.5}, {0.0, 0.25, 0.75}},
                      {.confidence = ConfidenceRule::kTop});
  EXPECT_EQ(to_string(answers), R"({"n":{"type":"noul","noul":0.75},)"
                                R"("c":{"type":"choice","choice":"m","confidence":0.5,)"
                                R"("probabilities":{"z":0.25,"a":0.25,"m":0.5}},)"
                                R"("s":{"type":"score","score":1.75,"confidence":0.75,)"
                                R"("legend":{"0":"low","1":{"k":[1.50,null]},"2":null},)"
                                R"("probabilities":{"0":0.0,"1":0.25,"2":0.75}}})");
}

TEST(Answers, ATieGoesToTheFirstInTheRequestsOrder) {
  const Json answers =
      answers_to_json(three_questions(), {{1, 0}, {0.5, 0.5, 0.0}, {0.5, 0.5, 0.0}});
  EXPECT_EQ(answers.find("c")->find("choice")->string(), "z");
  // Mode 0: 1 − (0.5·1) / ((1 + 0 + 1) / 3) = 0.25.
  EXPECT_EQ(answers.find("s")->find("confidence")->as_double(), 0.25);
}

TEST(Answers, PrintAllDigitsUnlessTheyAreRounded) {
  const std::vector<std::vector<double>> probabilities{
      {0.364423543214798, 0.6355764269828796}, {1e-5, 0.0, 0.99999}, {0.0, 0.12345, 0.87655}};
  const Json full = answers_to_json(three_questions(), probabilities);
  EXPECT_EQ(to_string(*full.find("n")), R"({"type":"noul","noul":0.364423543214798})");
  EXPECT_EQ(to_string(*full.find("c")->find("probabilities")),
            R"({"z":1e-05,"a":0.0,"m":0.99999})");
  const Json rounded = answers_to_json(three_questions(), probabilities,
                                       {.confidence = ConfidenceRule::kTop, .round_digits = 4});
  EXPECT_EQ(to_string(*rounded.find("n")), R"({"type":"noul","noul":0.3644})");
  EXPECT_EQ(to_string(*rounded.find("c")), R"({"type":"choice","choice":"m","confidence":1.0,)"
                                           R"("probabilities":{"z":0.0,"a":0.0,"m":1.0}})");
  // From the unrounded probabilities: Python's round(0.12345 + 2 * 0.87655, 4).
  EXPECT_EQ(to_string(*rounded.find("s")->find("score")), "1.8766");
}

TEST(Answers, TakeNothingForASingleOption) {
  const std::vector<Question> questions = parse_request(R"({"state": "a", "questions": {
        "only": {"type": "choice", "criteria": {"one": null}},
        "level": {"type": "score", "criteria": ["just one"]}}})",
                                                        "here")
                                              .questions;
  EXPECT_EQ(to_string(answers_to_json(questions, {{1.0}, {1.0}})),
            R"({"only":{"type":"choice","choice":"one","confidence":1.0,)"
            R"("probabilities":{"one":1.0}},)"
            R"("level":{"type":"score","score":0.0,"confidence":1.0,)"
            R"("legend":{"0":"just one"},"probabilities":{"0":1.0}}})");
}

}  // namespace
}  // namespace clefkit
