#include "clefkit/eval/drift.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "clefkit/base/lines.h"

namespace clefkit {
namespace {

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
    all.push_back(
        at_place(request.place, [&] { return engine.ask(request, options).probabilities; }));
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
      const std::size_t chosen = most_likely(mine);
      const std::size_t expected = most_likely(other);
      if (chosen != expected) {
        drift.changed.push_back({r, question.id, question.options[chosen].id,
                                 question.options[expected].id, margin_of(other)});
      }
    }
  }
  if (drift.probabilities > 0) drift.mean = sum / static_cast<double>(drift.probabilities);
  return drift;
}

Json drift_to_json(const Drift& drift, double margin) {
  Json changed = Json::array();
  for (const ChangedAnswer& answer : drift.changed) {
    changed.push_back(Json::object({{"request", std::uint64_t{answer.request + 1}},
                                    {"question", answer.question},
                                    {"chosen", answer.chosen},
                                    {"chosen_against", answer.chosen_against},
                                    {"margin", answer.margin}}));
  }
  return Json::object({{"requests", std::uint64_t{drift.requests}},
                       {"questions", std::uint64_t{drift.questions}},
                       {"agreeing", std::uint64_t{drift.agreeing()}},
                       {"changed_beyond_margin", std::uint64_t{drift.changed_beyond(margin)}},
                       {"largest", drift.largest},
                       {"mean", drift.mean},
                       {"changed", std::move(changed)}});
}

}  // namespace clefkit
