#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/questions/request.h"

namespace clefkit {

// A question that was answered and has an answer that is right.
struct Scored {
  const Question* question = nullptr;
  std::span<const double> probabilities{};  // By option.
  std::size_t expected = 0;                 // The index of the option that is right.

  std::size_t chosen() const;  // The likeliest, the first of several.
  bool is_met() const { return chosen() == expected; }
};

// Answers whose likeliest option had a probability within a tenth of the range of 0 to 1.
struct ReliabilityBin {
  std::size_t count = 0;
  double confidence = 0;  // The mean of those probabilities.
  double accuracy = 0;    // The part of the answers that were right.
};

// How good answers are, without regard to what was asked. docs/eval.md defines each figure; of no
// answers all are 0.
struct Metrics {
  static constexpr std::size_t kBins = 10;

  std::size_t count = 0;
  double accuracy = 0;
  double chance = 0;  // The accuracy to expect of guesses.
  double brier = 0;
  double log_loss = 0;
  double calibration_error = 0;  // ECE.
  std::array<ReliabilityBin, kBins> bins{};
  std::optional<double> score_error{};  // Mean absolute error in levels; of scores.
};

Metrics measure(std::span<const Scored> answers);

// An option's id as a class, whichever question has it, and how often it occurred.
struct ClassCounts {
  std::string id;
  std::size_t expected = 0;
  std::size_t chosen = 0;
  std::size_t right = 0;  // Both.

  double f1() const;  // 2·right / (expected + chosen)
};

// The classes that were expected or chosen, in the order in which questions name them.
std::vector<ClassCounts> count_classes(std::span<const Scored> answers);

// The mean of their F1; 0 of none.
double macro_f1(std::span<const ClassCounts> classes);
// The one most often expected, the first of several; null of none.
const ClassCounts* majority_of(std::span<const ClassCounts> classes);

// How often one class was chosen where another was right: [expected][chosen], both as in `classes`.
std::vector<std::vector<std::size_t>> count_confusions(std::span<const Scored> answers,
                                                       std::span<const ClassCounts> classes);

Json metrics_to_json(const Metrics& metrics);

}  // namespace clefkit
