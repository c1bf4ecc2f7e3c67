#include "clefkit/eval/recorded_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/base/error_of.h"
#include "clefkit/questions/answers.h"

namespace clefkit {
namespace {

using testing::ElementsAre;

constexpr std::string_view kSet =
    R"({"name": "a", "state": 1, "questions": {"n": {"type": "noul"}, "c": {"type": "choice", "criteria": {"red": null, "blue": null}}}}
{"name": "b", "state": 2, "questions": {"s": {"type": "score", "criteria": ["low", "high"]}}}
)";
constexpr std::string_view kA =
    R"({"name": "a", "answers": {"c": {"type": "choice", "probabilities": {"blue": 0.75, "red": 0.25}}, "n": {"type": "noul", "noul": 0.125}}})";
constexpr std::string_view kB =
    R"({"name": "b", "model": "x", "answers": {"s": {"type": "score", "score": 0.5, "legend": {"0": "low", "1": "high"}, "probabilities": {"0": 0.5, "1": 0.5}}}})";

Probabilities parsed(const std::string& answers, std::string_view set = kSet) {
  return parse_recorded_answers(answers, "answers.jsonl", parse_data_set(set, "set.jsonl"));
}

std::string message_of(const std::string& answers, std::string_view set = kSet) {
  return error_of([&] { parsed(answers, set); }).what();
}

std::string lines(std::string_view a, std::string_view b) {
  return fmt::format("{}\n\n{}\n", a, b);
}

TEST(RecordedAnswers, AreFoundByNameInAnyOrder) {
  const Probabilities all = parsed(lines(kB, kA));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0], ElementsAre(ElementsAre(0.125, 0.875), ElementsAre(0.25, 0.75)));
  EXPECT_THAT(all[1], ElementsAre(ElementsAre(0.5, 0.5)));
}

TEST(RecordedAnswers, AreWhatAResponseSays) {
  const DataSet set = parse_data_set(kSet, "set.jsonl");
  const Probabilities given{{{0.1, 0.9}, {0.3, 0.7}}, {{0.6, 0.4}}};
  std::string text;
  for (std::size_t i = 0; i < given.size(); ++i) {
    text += to_string(
        Json::object({{"name", set.cases[i].name},
                      {"answers", answers_to_json(set.requests[i].questions, given[i])}}));
    text += '\n';
  }
  EXPECT_EQ(parsed(text), given);
}

TEST(RecordedAnswers, MustBeOfThatSet) {
  EXPECT_EQ(
      message_of(std::string(kA)),
      "answers.jsonl: no answers to \"b\" (line 2 of set.jsonl), expected all of its requests");
  EXPECT_EQ(message_of(lines(kA, kA)),
            "answers.jsonl line 3: name: \"a\" for the second time, expected each request once");
  EXPECT_EQ(message_of(lines(kA, R"({"name": "d", "answers": {}})")),
            "answers.jsonl line 3: name: \"d\", expected that of a request of set.jsonl");
  EXPECT_EQ(message_of(R"({"answers": {}})"),
            "answers.jsonl line 1: name: missing, expected that of a request of set.jsonl");
  EXPECT_EQ(message_of(R"({"name": "b", "answers": {}})"),
            "answers.jsonl line 1: answers.s: missing, expected an object");
  EXPECT_EQ(message_of("[]"), "answers.jsonl line 1: an array, expected an object");
}

TEST(RecordedAnswers, MustBeProbabilitiesOfTheQuestionsOptions) {
  const auto message = [](const std::string& answer) {
    return message_of(R"({"name": "b", "answers": {"s": )" + answer + "}}");
  };
  const std::string at = "answers.jsonl line 1: answers.s.";
  EXPECT_EQ(message(R"({"type": "noul", "noul": 1})"), at + "type: \"noul\", expected score");
  EXPECT_EQ(message(R"({"type": "score"})"),
            at + "probabilities: missing, expected an object from option to probability");
  const auto of = [&](const std::string& values) {
    return message(R"({"type": "score", "probabilities": {)" + values + "}}");
  };
  EXPECT_EQ(of(R"("0": 1)"), at + "probabilities.1: missing, expected a probability");
  EXPECT_EQ(of(R"("0": 0.5, "1": 0.5, "2": 0)"),
            at + "probabilities: 3 options, expected the question's 2");
  EXPECT_EQ(of(R"("0": 1.5, "1": -0.5)"),
            at + "probabilities.0: 1.5, expected a probability from 0 to 1");
  EXPECT_EQ(of(R"("0": 0.5, "1": 0.25)"),
            at + "probabilities: probabilities that add up to 0.7500, expected 1");
  EXPECT_EQ(of(R"("0": "a", "1": 1)"), at + "probabilities.0: \"a\", expected a probability");
}

TEST(RecordedAnswers, NeedNamesOfTheirOwn) {
  const std::string_view nameless = R"({"state": 1, "questions": {"n": {"type": "noul"}}})";
  EXPECT_EQ(message_of("", nameless),
            "set.jsonl line 1: name: missing, expected one, which recorded answers give");
  const std::string_view twice = R"({"name": "a", "state": 1, "questions": {"n": {"type": "noul"}}}

{"name": "a", "state": 1, "questions": {"n": {"type": "noul"}}})";
  EXPECT_EQ(message_of("", twice),
            "set.jsonl line 3: name: \"a\" is line 1's as well, expected another for each line");
}

}  // namespace
}  // namespace clefkit
