#include <cstdlib>

#include "clefkit/eval/recorded_answers.h"

using clefkit::DataSet;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const DataSet& set) {
  require(!set.requests.empty() && set.requests.size() == set.cases.size());
  std::size_t line = 0;
  for (std::size_t i = 0; i < set.cases.size(); ++i) {
    const clefkit::Case& entry = set.cases[i];
    const std::vector<clefkit::Question>& questions = set.requests[i].questions;
    require(entry.line > line);
    line = entry.line;
    require(entry.expected.size() == questions.size() && entry.skills.size() == questions.size());
    for (std::size_t q = 0; q < questions.size(); ++q) {
      require(!entry.expected[q] || *entry.expected[q] < questions[q].options.size());
    }
  }
}

void check(const DataSet& set, const clefkit::Probabilities& answers) {
  require(answers.size() == set.requests.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::vector<clefkit::Question>& questions = set.requests[i].questions;
    require(answers[i].size() == questions.size());
    for (std::size_t q = 0; q < questions.size(); ++q) {
      require(answers[i][q].size() == questions[q].options.size());
      for (const double probability : answers[i][q]) require(probability >= 0 && probability <= 1);
    }
  }
}

}  // namespace

// A data set and, after a zero byte, answers recorded for it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  try {
    const DataSet set = clefkit::parse_data_set(text.substr(0, end), "set");
    check(set);
    if (end != text.npos) {
      check(set, clefkit::parse_recorded_answers(text.substr(end + 1), "answers", set));
    }
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kInvalidArgument) std::abort();
  }
  return 0;
}
