#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/eval/data_set.h"
#include "clefkit/eval/drift.h"
#include "clefkit/eval/metrics.h"

namespace clefkit {

// How many expected answers were given: by the model, by what it is compared with, and by both.
struct Expectations {
  std::size_t count = 0;
  std::size_t met = 0;
  std::size_t met_against = 0;  // 0, as `met_by_both`, where nothing is compared with.
  std::size_t met_by_both = 0;
};

// The answers of a part of the set, of those that are expected.
struct Summary {
  std::string name;
  Metrics metrics;
  double majority = 0;  // The accuracy of always giving each group's commonest answer.
  double macro_f1 = 0;  // The mean over the groups.
  Expectations expectations;
};

// Questions that test the same thing: those of a skill, or those of no skill with the same id and
// type.
struct QuestionGroup {
  Summary summary;  // Its name is the skill's or the id.
  bool is_skill = false;
  bool is_listed = true;       // Not a skill that the model does not claim to have.
  std::string type;            // "noul", "choice", "score", or "mixed".
  std::string majority_class;  // The option that is most often right.
  std::vector<ClassCounts> classes;
  // As count_confusions has it; empty with more than kMostConfusedClasses.
  std::vector<std::vector<std::size_t>> confusions;
};
inline constexpr std::size_t kMostConfusedClasses = 20;

// A question that was not answered as expected.
struct MissedExpectation {
  std::size_t line = 0;
  std::string name;  // Of the request; may be empty.
  std::string question;
  std::string expected, chosen;
  double probability = 0;  // Of what was expected.
};

// What a model's answers to a data set are worth. Questions on skills that the model does not list
// count in their own groups, in `unlisted` and in the drift, and nowhere else.
struct Evaluation {
  std::size_t requests = 0;
  std::size_t questions = 0;
  Summary whole;
  std::vector<Summary> types;         // Those that occur: nouls, choices, scores.
  std::vector<QuestionGroup> groups;  // In the order of the set.
  Expectations unlisted;
  std::vector<MissedExpectation> missed;  // Unlisted ones too.
  std::optional<Drift> drift;             // From what the model is compared with.
};

// `found` and `against` are answers to the set's requests. `listed` are the skills that the model
// claims to have; without it all are.
Evaluation evaluate(const DataSet& set, const Probabilities& found,
                    const std::optional<Probabilities>& against,
                    const std::optional<std::set<std::string>>& listed);

// As docs/eval.md has it; `margin` as in drift_to_json.
Json evaluation_to_json(const Evaluation& evaluation, double margin);

}  // namespace clefkit
