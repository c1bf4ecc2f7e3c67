#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "clefkit/engine/engine.h"
#include "clefkit/engine/golden_case.h"
#include "clefkit/model/checkpoint.h"

// Every golden request through the programs, on the simulator: minutes (label `slow`).
// golden_test.cc has some of them.
namespace clefkit {
namespace {

struct Simulation {
  std::string checkpoint, profile;
  bool with_media;
  double tolerance;  // Of a probability, as the project asks.
};
void PrintTo(const Simulation& simulation, std::ostream* out) {
  *out << simulation.checkpoint << ' ' << simulation.profile;
}

std::vector<Simulation> simulations() {
  std::vector<Simulation> found;
  for (const char* checkpoint : {"micro", "tied"}) {
    for (const bool with_media : {false, true}) {
      for (const auto& [profile, tolerance] :
           {std::pair("ideal", 0.01), std::pair("strict", 0.01), std::pair("m1", 0.065),
            std::pair("m5", 0.065), std::pair("h15g", 0.065)}) {
        found.push_back({checkpoint, profile, with_media, tolerance});
      }
    }
  }
  return found;
}

class GoldenSimulation : public ::testing::TestWithParam<Simulation> {};

INSTANTIATE_TEST_SUITE_P(Cases, GoldenSimulation, ::testing::ValuesIn(simulations()),
                         [](const auto& test) {
                           return test.param.checkpoint + "_" + test.param.profile +
                                  (test.param.with_media ? "_media" : "_text");
                         });

std::size_t first_largest(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

TEST_P(GoldenSimulation, AnswersAsTheReference) {
  const auto& [checkpoint, profile, with_media, tolerance] = GetParam();
  Engine engine(open_checkpoint(golden_directory() / "checkpoints" / checkpoint),
                {.threads = 2, .precision = Precision::kExact, .backend = "simulator:" + profile});
  double largest = 0, sum = 0;
  std::size_t records = 0, probabilities = 0, changed = 0;
  for (const GoldenCase& golden : load_golden_cases(checkpoint, with_media)) {
    SCOPED_TRACE(golden.name);
    // Records of many thousand tokens: by the plainest profile alone.
    if (profile != "ideal" && to_string(golden.request.state).size() > 4000) continue;
    const Response response = engine.ask(golden.request, golden.options);
    const std::vector<double> differences = probability_differences(golden, response);
    for (const double difference : differences) {
      EXPECT_LE(difference, tolerance);
      largest = std::max(largest, difference);
      sum += difference;
    }
    probabilities += differences.size();
    ++records;
    for (std::size_t q = 0; q < golden.request.questions.size(); ++q) {
      const Question& question = golden.request.questions[q];
      const Json* expected = golden.answers.find(question.id)->find("probabilities");
      std::vector<double> values;
      for (const auto& option : question.options) {
        values.push_back(expected->find(option.id)->as_double().value());
      }
      const std::size_t right = first_largest(values);
      const std::size_t chosen = first_largest(response.probabilities[q]);
      if (chosen == right) continue;
      ++changed;
      EXPECT_LE(values[right] - values[chosen], tolerance) << question.id;
    }
  }
  EXPECT_GT(records, 0u);
  std::printf(
      "%s %s: %zu records, %zu probabilities, largest difference %.4f, mean %.5f, %zu "
      "answers changed\n",
      checkpoint.c_str(), profile.c_str(), records, probabilities, largest,
      sum / static_cast<double>(probabilities), changed);
}

}  // namespace
}  // namespace clefkit
