#include "clefkit/eval/metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "clefkit/questions/answers.h"

namespace clefkit {
namespace {

// An impossible answer that was right would make the mean infinite.
constexpr double kLeastProbability = 1e-12;

double part(double of, std::size_t count) {
  return count == 0 ? 0 : of / static_cast<double>(count);
}

double squared_error(const Scored& answer) {
  double sum = 0;
  for (std::size_t i = 0; i < answer.probabilities.size(); ++i) {
    const double error = answer.probabilities[i] - (i == answer.expected ? 1 : 0);
    sum += error * error;
  }
  return sum;
}

double level_error(const Scored& answer) {
  double level = 0;
  for (std::size_t i = 0; i < answer.probabilities.size(); ++i) {
    level += static_cast<double>(i) * answer.probabilities[i];
  }
  return std::fabs(level - static_cast<double>(answer.expected));
}

std::size_t bin_of(double probability) {
  const double scaled = probability * static_cast<double>(Metrics::kBins);
  return std::min(Metrics::kBins - 1, static_cast<std::size_t>(std::max(0.0, scaled)));
}

}  // namespace

std::size_t Scored::chosen() const { return most_likely(probabilities); }

Metrics measure(std::span<const Scored> answers) {
  Metrics metrics;
  metrics.count = answers.size();
  double right = 0, chance = 0, brier = 0, log_loss = 0, score_error = 0;
  std::size_t scores = 0;
  for (const Scored& answer : answers) {
    assert(answer.expected < answer.probabilities.size());
    const bool is_met = answer.is_met();
    right += is_met ? 1 : 0;
    chance += 1 / static_cast<double>(answer.probabilities.size());
    brier += squared_error(answer);
    log_loss -= std::log(std::max(answer.probabilities[answer.expected], kLeastProbability));
    if (answer.question->type == QuestionType::kScore) {
      score_error += level_error(answer);
      ++scores;
    }
    const double confidence = answer.probabilities[answer.chosen()];
    ReliabilityBin& bin = metrics.bins[bin_of(confidence)];
    ++bin.count;
    bin.confidence += confidence;
    bin.accuracy += is_met ? 1 : 0;
  }
  metrics.accuracy = part(right, answers.size());
  metrics.chance = part(chance, answers.size());
  metrics.brier = part(brier, answers.size());
  metrics.log_loss = part(log_loss, answers.size());
  if (scores > 0) metrics.score_error = part(score_error, scores);
  double error = 0;
  for (ReliabilityBin& bin : metrics.bins) {
    error += std::fabs(bin.accuracy - bin.confidence);  // Times its count: both are sums still.
    bin.confidence = part(bin.confidence, bin.count);
    bin.accuracy = part(bin.accuracy, bin.count);
  }
  metrics.calibration_error = part(error, answers.size());
  return metrics;
}

double ClassCounts::f1() const { return part(2 * static_cast<double>(right), expected + chosen); }

std::vector<ClassCounts> count_classes(std::span<const Scored> answers) {
  std::vector<ClassCounts> classes;
  std::map<std::string_view, std::size_t> places;
  for (const Scored& answer : answers) {
    for (const Option& option : answer.question->options) {
      if (places.emplace(option.id, classes.size()).second) classes.push_back({.id = option.id});
    }
    const auto of = [&](std::size_t option) -> ClassCounts& {
      return classes[places.at(answer.question->options[option].id)];
    };
    ++of(answer.expected).expected;
    ++of(answer.chosen()).chosen;
    if (answer.is_met()) ++of(answer.expected).right;
  }
  std::erase_if(classes, [](const ClassCounts& c) { return c.expected == 0 && c.chosen == 0; });
  return classes;
}

double macro_f1(std::span<const ClassCounts> classes) {
  double sum = 0;
  for (const ClassCounts& each : classes) sum += each.f1();
  return part(sum, classes.size());
}

const ClassCounts* majority_of(std::span<const ClassCounts> classes) {
  const auto largest = std::ranges::max_element(classes, {}, &ClassCounts::expected);
  return largest == classes.end() ? nullptr : &*largest;
}

std::vector<std::vector<std::size_t>> count_confusions(std::span<const Scored> answers,
                                                       std::span<const ClassCounts> classes) {
  std::map<std::string_view, std::size_t> indices;
  for (const ClassCounts& each : classes) indices.emplace(each.id, indices.size());
  std::vector<std::vector<std::size_t>> counts(classes.size(),
                                               std::vector<std::size_t>(classes.size()));
  for (const Scored& answer : answers) {
    const std::vector<Option>& options = answer.question->options;
    ++counts[indices.at(options[answer.expected].id)][indices.at(options[answer.chosen()].id)];
  }
  return counts;
}

Json metrics_to_json(const Metrics& metrics) {
  Json bins = Json::array();
  for (const ReliabilityBin& bin : metrics.bins) {
    bins.push_back(Json::object({{"count", std::uint64_t{bin.count}},
                                 {"confidence", bin.confidence},
                                 {"accuracy", bin.accuracy}}));
  }
  return Json::object({{"count", std::uint64_t{metrics.count}},
                       {"accuracy", metrics.accuracy},
                       {"chance", metrics.chance},
                       {"brier", metrics.brier},
                       {"log_loss", metrics.log_loss},
                       {"ece", metrics.calibration_error},
                       {"score_mae", metrics.score_error ? Json(*metrics.score_error) : Json()},
                       {"bins", std::move(bins)}});
}

}  // namespace clefkit
