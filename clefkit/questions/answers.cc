#include "clefkit/questions/answers.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace clefkit {
namespace {

double mean_level(std::span<const double> probabilities) {
  double sum = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    sum += static_cast<double>(i) * probabilities[i];
  }
  return sum;
}

// How far the levels lie from the most likely one, over what a uniform guess at the middle gives.
double relative_spread(std::span<const double> probabilities) {
  const auto count = static_cast<double>(probabilities.size());
  const auto top = static_cast<double>(most_likely(probabilities));
  double spread = 0;
  double uniform_spread = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const auto level = static_cast<double>(i);
    spread += probabilities[i] * std::fabs(level - top);
    uniform_spread += std::fabs(level - (count - 1) / 2) / count;
  }
  return spread / uniform_spread;
}

// Printed numbers of one response.
class Rounding {
 public:
  explicit Rounding(std::optional<int> digits) : digits_(digits) {}
  Json operator()(double value) const { return digits_ ? round_to_digits(value, *digits_) : value; }

 private:
  std::optional<int> digits_;
};

Json answer_of(const Question& question, std::span<const double> probabilities,
               const AnswerOptions& options) {
  assert(probabilities.size() == question.options.size());
  const Rounding rounded(options.round_digits);
  Json answer = Json::object({{"type", to_string(question.type)}});
  if (question.type == QuestionType::kNoul) {
    answer.set("noul", rounded(probabilities[0]));
    return answer;
  }
  if (question.type == QuestionType::kChoice) {
    answer.set("choice", question.options[most_likely(probabilities)].id);
  } else {
    answer.set("score", rounded(mean_level(probabilities)));
  }
  answer.set("confidence",
             rounded(confidence_of(question.type, probabilities, options.confidence)));
  if (question.type == QuestionType::kScore) {
    Json legend = Json::object();
    for (std::size_t i = 0; i < question.options.size(); ++i) {
      legend.set(question.options[i].id, question.legend[i]);
    }
    answer.set("legend", std::move(legend));
  }
  Json by_option = Json::object();
  for (std::size_t i = 0; i < question.options.size(); ++i) {
    by_option.set(question.options[i].id, rounded(probabilities[i]));
  }
  answer.set("probabilities", std::move(by_option));
  return answer;
}

}  // namespace

std::optional<ConfidenceRule> confidence_rule(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, ConfidenceRule>, 4> kRules{
      {{"typesafe", ConfidenceRule::kTypesafe},
       {"top", ConfidenceRule::kTop},
       {"purity", ConfidenceRule::kPurity},
       {"entropy", ConfidenceRule::kEntropy}}};
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
  }
  return std::nullopt;
}

std::size_t most_likely(std::span<const double> probabilities) {
  return static_cast<std::size_t>(std::max_element(probabilities.begin(), probabilities.end()) -
                                  probabilities.begin());
}

Json answers_to_json(std::span<const Question> questions,
                     const std::vector<std::vector<double>>& probabilities,
                     const AnswerOptions& options) {
  assert(probabilities.size() == questions.size());
  Json answers = Json::object();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    answers.set(questions[i].id, answer_of(questions[i], probabilities[i], options));
  }
  return answers;
}

double confidence_of(QuestionType type, std::span<const double> probabilities,
                     ConfidenceRule rule) {
  assert(!probabilities.empty());
  const auto count = static_cast<double>(probabilities.size());
  if (probabilities.size() == 1) return 1;
  const double top = probabilities[most_likely(probabilities)];
  // 0 for a uniform distribution, 1 for a certain one.
  const auto above_uniform = [&](double value) { return (value - 1 / count) / (1 - 1 / count); };
  double confidence = 0;
  switch (rule) {
    case ConfidenceRule::kTypesafe:
      confidence =
          type == QuestionType::kScore ? 1 - relative_spread(probabilities) : above_uniform(top);
      break;
    case ConfidenceRule::kTop:
      confidence = top;
      break;
    case ConfidenceRule::kPurity: {
      double purity = 0;
      for (const double p : probabilities) purity += p * p;
      confidence = above_uniform(purity);
      break;
    }
    case ConfidenceRule::kEntropy: {
      double negative_entropy = 0;
      for (const double p : probabilities) negative_entropy += p > 0 ? p * std::log(p) : 0;
      confidence = 1 + negative_entropy / std::log(count);
      break;
    }
  }
  // Float32 probabilities add up to 1 only nearly, so a uniform answer may come out below 0.
  return std::clamp(confidence, 0.0, 1.0);
}

double round_to_digits(double value, int digits) {
  assert(digits >= 0);
  // A double has no decimals beyond its 1074th.
  std::array<char, 1500> buffer;
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size() - 1, value,
                                     std::chars_format::fixed, std::min(digits, 1074));
  *written.ptr = '\0';
  return std::strtod(buffer.data(), nullptr);
}

}  // namespace clefkit
