#include "clefkit/eval/drift.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace clefkit {
namespace {

std::size_t chosen_of(const std::vector<double>& probabilities) {
  return static_cast<std::size_t>(std::ranges::max_element(probabilities) - probabilities.begin());
}

double margin_of(std::vector<double> probabilities) {
  if (probabilities.size() < 2) return 1;
  std::ranges::partial_sort(probabilities, probabilities.begin() + 2, std::greater<>());
  return probabilities[0] - probabilities[1];
}

}  // namespace

Probabilities answer_all(Engine& engine, const std::vector<Request>& requests,
                         const AskOptions& options,
                         const std::function<void(std::size_t, std::size_t)>& progress) {
  Probabilities all;
  for (const Request& request : requests) {
    all.push_back(engine.ask(request, options).probabilities);
    if (progress) progress(all.size(), requests.size());
  }
  return all;
}

std::size_t Drift::changed_beyond(double margin) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      changed, [&](const ChangedAnswer& answer) { return answer.margin > margin; }));
}

Drift compare_probabilities(const std::vector<Request>& requests, const Probabilities& found,
                            const Probabilities& against) {
  assert(found.size() == requests.size() && against.size() == requests.size());
  Drift drift;
  drift.requests = requests.size();
  double sum = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    for (std::size_t q = 0; q < requests[r].questions.size(); ++q) {
      const Question& question = requests[r].questions[q];
      const std::vector<double>& mine = found[r][q];
      const std::vector<double>& other = against[r][q];
      ++drift.questions;
      for (std::size_t o = 0; o < mine.size(); ++o) {
        const double difference = std::fabs(mine[o] - other[o]);
        drift.largest = std::max(drift.largest, difference);
        sum += difference;
        ++drift.probabilities;
      }
      const std::size_t chosen = chosen_of(mine);
      const std::size_t expected = chosen_of(other);
      if (chosen != expected) {
        drift.changed.push_back({r, question.id, question.options[chosen].id,
                                 question.options[expected].id, margin_of(other)});
      }
    }
  }
  if (drift.probabilities > 0) drift.mean = sum / static_cast<double>(drift.probabilities);
  return drift;
}

}  // namespace clefkit
