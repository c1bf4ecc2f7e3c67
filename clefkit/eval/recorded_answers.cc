#include "clefkit/eval/recorded_answers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "clefkit/base/lines.h"
#include "clefkit/questions/json_members.h"

namespace clefkit {
namespace {

// 255 probabilities rounded to four decimals may add up to this much more or less than 1.
constexpr double kSumTolerance = 0.02;

struct Names {
  std::map<std::string_view, std::size_t> requests;  // To their index.

  explicit Names(const DataSet& set) {
    for (std::size_t i = 0; i < set.cases.size(); ++i) {
      const Case& entry = set.cases[i];
      const std::string place = fmt::format("{} line {}: name", set.source, entry.line);
      if (entry.name.empty()) {
        refuse_invalid(place, "missing, expected one, which recorded answers give");
      }
      const auto [first, is_new] = requests.emplace(entry.name, i);
      if (!is_new) {
        refuse_invalid(place, "{} is line {}'s as well, expected another for each line",
                       in_quotes(entry.name), set.cases[first->second].line);
      }
    }
  }
};

double read_probability(const Json* value, const std::string& where) {
  const std::optional<double> number = value == nullptr ? std::nullopt : value->as_double();
  if (!number) refuse_invalid(where, "{}, expected a probability", found(value));
  if (!(*number >= 0 && *number <= 1)) {
    refuse_invalid(where, "{}, expected a probability from 0 to 1", *number);
  }
  return *number;
}

std::vector<double> read_options(const Question& question, const Json* json,
                                 const std::string& where) {
  if (json == nullptr || !json->is_object()) {
    refuse_invalid(where, "{}, expected an object from option to probability", found(json));
  }
  std::vector<double> probabilities;
  double sum = 0;
  for (const Option& option : question.options) {
    probabilities.push_back(
        read_probability(json->find(option.id), question_place(where, option.id)));
    sum += probabilities.back();
  }
  if (json->members().size() != question.options.size()) {
    refuse_invalid(where, "{} options, expected the question's {}", json->members().size(),
                   question.options.size());
  }
  if (std::fabs(sum - 1) > kSumTolerance) {
    refuse_invalid(where, "probabilities that add up to {:.4f}, expected 1", sum);
  }
  return probabilities;
}

std::vector<double> read_answer(const Question& question, const Json* json,
                                const std::string& where) {
  if (json == nullptr || !json->is_object()) {
    refuse_invalid(where, "{}, expected an object", found(json));
  }
  const Json* const type = json->find("type");
  if (type == nullptr || !type->is_string() || type->string() != to_string(question.type)) {
    refuse_invalid(where + ".type", "{}, expected {}", found(type), to_string(question.type));
  }
  if (question.type != QuestionType::kNoul) {
    return read_options(question, json->find("probabilities"), where + ".probabilities");
  }
  const double yes = read_probability(json->find("noul"), where + ".noul");
  return {yes, 1 - yes};
}

std::vector<std::vector<double>> read_answers(const Request& request, const Json* json) {
  const std::string where = "answers";
  if (json == nullptr || !json->is_object()) {
    refuse_invalid(where, "{}, expected an object by question", found(json));
  }
  std::vector<std::vector<double>> answers;
  for (const Question& question : request.questions) {
    answers.push_back(
        read_answer(question, json->find(question.id), question_place(where, question.id)));
  }
  if (json->members().size() != request.questions.size()) {
    refuse_invalid(where, "{} answers, expected the request's {}", json->members().size(),
                   request.questions.size());
  }
  return answers;
}

}  // namespace

Probabilities parse_recorded_answers(std::string_view text, const std::string& source,
                                     const DataSet& set) {
  const Names names(set);
  Probabilities all(set.requests.size());
  for (const Line& line : filled_lines(text)) {
    const std::string place = fmt::format("{} line {}", source, line.number);
    at_place(place, [&] {
      const Json json = parse_json(line.text, place, {.error = ErrorCode::kInvalidArgument});
      if (!json.is_object()) refuse_invalid(place, "{}, expected an object", found(&json));
      const Json* const name = json.find("name");
      const auto known = name != nullptr && name->is_string() ? names.requests.find(name->string())
                                                              : names.requests.end();
      if (known == names.requests.end()) {
        refuse_invalid("name", "{}, expected that of a request of {}", found(name), set.source);
      }
      std::vector<std::vector<double>>& answers = all[known->second];
      if (!answers.empty()) {
        refuse_invalid("name", "{} for the second time, expected each request once",
                       in_quotes(known->first));
      }
      answers = read_answers(set.requests[known->second], json.find("answers"));
    });
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) {
      refuse_invalid(source, "no answers to {} (line {} of {}), expected all of its requests",
                     in_quotes(set.cases[i].name), set.cases[i].line, set.source);
    }
  }
  return all;
}

}  // namespace clefkit
