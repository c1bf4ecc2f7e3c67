#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/questions/request.h"

namespace clefkit {

// The definitions of an answer's `confidence` in use, for n options with probabilities p and the
// most likely one (the first, when several are) at index k. 1 when there is one option only.
enum class ConfidenceRule {
  kTypesafe,  // Choice: (p_k − 1/n) / (1 − 1/n). Score: 1 − Σ p_i·|i − k| / mean_i |i − (n−1)/2|.
  kTop,      // p_k, as the release's code does.
  kPurity,   // (Σ p_i² − 1/n) / (1 − 1/n)
  kEntropy,  // 1 + Σ p_i·ln p_i / ln n
};

// By the name that requests and flags use: typesafe, top, purity or entropy.
std::optional<ConfidenceRule> confidence_rule(std::string_view name);

struct AnswerOptions {
  ConfidenceRule confidence = ConfidenceRule::kTypesafe;
  // Decimals of every number, from 0, rounded as Python's round() does; otherwise none is rounded.
  std::optional<int> round_digits{};
};

// The `answers` object of a System One response, in the questions' order:
//   noul    {type, noul}
//   choice  {type, choice, confidence, probabilities}
//   score   {type, score, confidence, legend, probabilities}
// `probabilities` has a row per question with its options in the request's order.
Json answers_to_json(std::span<const Question> questions,
                     const std::vector<std::vector<double>>& probabilities,
                     const AnswerOptions& options = {});

// The index of the likeliest option, the first of several.
std::size_t most_likely(std::span<const double> probabilities);

// In 0 … 1. `type` matters to kTypesafe only.
double confidence_of(QuestionType type, std::span<const double> probabilities, ConfidenceRule rule);

// Python's round(value, digits) for digits from 0: right for the double's exact value, ties to
// even.
double round_to_digits(double value, int digits);

}  // namespace clefkit
