#include "clefkit/eval/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace clefkit {
namespace {

using testing::ElementsAre;

Question question(QuestionType type, const std::vector<std::string>& ids) {
  Question made;
  made.id = "q";
  made.type = type;
  for (const std::string& id : ids) made.options.push_back({id, std::nullopt});
  return made;
}

Question noul() { return question(QuestionType::kNoul, {"true", "false"}); }
Question score() { return question(QuestionType::kScore, {"0", "1", "2"}); }

TEST(Metrics, AreThoseWorkedOutByHand) {
  const Question asked = noul();
  const std::vector<double> a{0.8, 0.2}, b{0.6, 0.4}, c{0.1, 0.9}, d{0.85, 0.15};
  const std::vector<Scored> answers{{&asked, a, 0}, {&asked, b, 1}, {&asked, c, 1}, {&asked, d, 0}};

  const Metrics metrics = measure(answers);

  EXPECT_EQ(metrics.count, 4u);
  EXPECT_DOUBLE_EQ(metrics.accuracy, 0.75);  // b was wrong.
  EXPECT_DOUBLE_EQ(metrics.chance, 0.5);
  // 2·0.2², 2·0.6², 2·0.1², 2·0.15²
  EXPECT_NEAR(metrics.brier, (0.08 + 0.72 + 0.02 + 0.045) / 4, 1e-12);
  // -ln 0.8, -ln 0.4, -ln 0.9, -ln 0.85
  EXPECT_NEAR(metrics.log_loss,
              (0.2231435513142 + 0.9162907318742 + 0.1053605156578 + 0.1625189294978) / 4, 1e-12);
  // b alone: 0.6 off; a and d: 1 - 0.825 off, twice; c: 0.1 off.
  EXPECT_NEAR(metrics.calibration_error, (0.6 + 2 * 0.175 + 0.1) / 4, 1e-12);
  EXPECT_FALSE(metrics.score_error);
}

TEST(Metrics, FillReliabilityBinsByTheChosenOptionsProbability) {
  const Question asked = noul();
  const std::vector<double> a{0.8, 0.2}, b{0.85, 0.15}, certain{0, 1}, even{0.5, 0.5};
  const Metrics metrics = measure(
      std::vector<Scored>{{&asked, a, 0}, {&asked, b, 1}, {&asked, certain, 1}, {&asked, even, 0}});
  EXPECT_EQ(metrics.bins[8].count, 2u);
  EXPECT_NEAR(metrics.bins[8].confidence, 0.825, 1e-12);
  EXPECT_DOUBLE_EQ(metrics.bins[8].accuracy, 0.5);
  EXPECT_EQ(metrics.bins[9].count, 1u);             // A probability of 1 belongs to the last.
  EXPECT_EQ(metrics.bins[5].count, 1u);             // Bins hold their lower end.
  EXPECT_DOUBLE_EQ(metrics.bins[5].accuracy, 1.0);  // A tie goes to the first option.
  EXPECT_EQ(metrics.bins[0].count, 0u);
}

TEST(Metrics, MeasureScoresByTheirMeanLevel) {
  const Question levels = score(), yes_or_no = noul();
  const std::vector<double> spread{0.2, 0.3, 0.5}, certain{1, 0, 0}, even{0.5, 0.5};
  const Metrics metrics = measure(
      std::vector<Scored>{{&levels, spread, 1}, {&levels, certain, 2}, {&yes_or_no, even, 0}});
  // Mean levels of 1.3 and 0, where 1 and 2 are right; the noul has none.
  ASSERT_TRUE(metrics.score_error);
  EXPECT_NEAR(*metrics.score_error, (0.3 + 2) / 2, 1e-12);
  EXPECT_NEAR(metrics.accuracy, 1.0 / 3, 1e-12);  // Of scores the likeliest level counts.
  EXPECT_NEAR(metrics.chance, (1.0 / 3 + 1.0 / 3 + 0.5) / 3, 1e-12);
}

TEST(Metrics, KeepAnImpossibleAnswerThatWasRightFinite) {
  const Question levels = score();
  const std::vector<double> certain{1, 0, 0};
  // -ln 1e-12
  EXPECT_NEAR(measure(std::vector<Scored>{{&levels, certain, 2}}).log_loss, 27.6310211159285, 1e-9);
}

TEST(Metrics, OfNothingAreNothing) {
  const Metrics metrics = measure({});
  EXPECT_EQ(metrics.count, 0u);
  EXPECT_EQ(metrics.accuracy, 0.0);
  EXPECT_EQ(metrics.calibration_error, 0.0);
  EXPECT_TRUE(count_classes({}).empty());
  EXPECT_EQ(macro_f1({}), 0.0);
  EXPECT_EQ(majority_of({}), nullptr);
}

// Two questions whose options have another order and are not all the same.
TEST(Classes, AreOptionsByTheirIds) {
  const Question first = question(QuestionType::kChoice, {"red", "blue", "green"});
  const Question second = question(QuestionType::kChoice, {"blue", "violet", "red"});
  const std::vector<double> top0{0.8, 0.1, 0.1}, top1{0.1, 0.8, 0.1}, top2{0.1, 0.1, 0.8};
  const std::vector<Scored> answers{
      {&first, top0, 0},   // red, rightly
      {&first, top1, 0},   // blue instead of red
      {&second, top0, 0},  // blue, rightly
      {&second, top2, 2},  // red, rightly
      {&second, top2, 1},  // red instead of violet
  };

  const std::vector<ClassCounts> classes = count_classes(answers);

  // Green was neither expected nor chosen.
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].id, "red");
  EXPECT_EQ(classes[1].id, "blue");
  EXPECT_EQ(classes[2].id, "violet");
  EXPECT_EQ(classes[0].expected, 3u);
  EXPECT_EQ(classes[0].chosen, 3u);
  EXPECT_EQ(classes[0].right, 2u);
  EXPECT_NEAR(classes[0].f1(), 2.0 / 3, 1e-12);
  EXPECT_NEAR(classes[1].f1(), 2.0 / 3, 1e-12);  // Expected once, chosen twice.
  EXPECT_EQ(classes[2].f1(), 0.0);
  EXPECT_NEAR(macro_f1(classes), 4.0 / 9, 1e-12);
  EXPECT_EQ(majority_of(classes)->id, "red");
  EXPECT_THAT(
      count_confusions(answers, classes),
      ElementsAre(ElementsAre(2u, 1u, 0u), ElementsAre(0u, 1u, 0u), ElementsAre(1u, 0u, 0u)));
}

TEST(Metrics, AreWrittenWithTheNamesOfTheManual) {
  const Question asked = noul();
  const std::vector<double> a{0.75, 0.25};
  const Json json = metrics_to_json(measure(std::vector<Scored>{{&asked, a, 0}}));
  EXPECT_EQ(json.find("count")->as_uint64(), 1u);
  EXPECT_EQ(json.find("accuracy")->as_double(), 1.0);
  EXPECT_EQ(json.find("brier")->as_double(), 0.125);
  EXPECT_NEAR(json.find("log_loss")->as_double().value(), 0.2876820724518, 1e-12);
  EXPECT_EQ(json.find("ece")->as_double(), 0.25);
  EXPECT_TRUE(json.find("score_mae")->is_null());
  EXPECT_EQ(json.find("bins")->items().size(), 10u);
}

}  // namespace
}  // namespace clefkit
