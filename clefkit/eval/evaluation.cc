#include "clefkit/eval/evaluation.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "clefkit/questions/answers.h"

namespace clefkit {
namespace {

// An answer that was expected.
struct Judged {
  Scored answer;
  std::size_t group = 0;
  bool is_listed = true;
  bool is_met_against = false;
};

// What tells groups apart: whether it is a skill's, its name, and a question's type where it is
// not.
using GroupKey = std::tuple<bool, std::string, QuestionType>;

Expectations count_expectations(std::span<const Judged> all) {
  Expectations counts;
  for (const Judged& judged : all) {
    const bool is_met = judged.answer.is_met();
    ++counts.count;
    counts.met += is_met ? 1 : 0;
    counts.met_against += judged.is_met_against ? 1 : 0;
    counts.met_by_both += is_met && judged.is_met_against ? 1 : 0;
  }
  return counts;
}

std::vector<Scored> answers_of(std::span<const Judged> all) {
  std::vector<Scored> answers;
  for (const Judged& judged : all) answers.push_back(judged.answer);
  return answers;
}

template <typename Predicate>
std::vector<Judged> those(std::span<const Judged> all, Predicate&& predicate) {
  std::vector<Judged> some;
  std::ranges::copy_if(all, std::back_inserter(some), predicate);
  return some;
}

Summary summarize(std::string name, std::span<const Judged> all) {
  Summary summary{.name = std::move(name),
                  .metrics = measure(answers_of(all)),
                  .expectations = count_expectations(all)};
  std::map<std::size_t, std::vector<Scored>> groups;
  for (const Judged& judged : all) groups[judged.group].push_back(judged.answer);
  for (const auto& [group, answers] : groups) {
    const std::vector<ClassCounts> classes = count_classes(answers);
    summary.majority += static_cast<double>(majority_of(classes)->expected);
    summary.macro_f1 += macro_f1(classes);
  }
  if (!all.empty()) {
    summary.majority /= static_cast<double>(all.size());
    summary.macro_f1 /= static_cast<double>(groups.size());
  }
  return summary;
}

std::string type_of(std::span<const Scored> answers) {
  const QuestionType type = answers.front().question->type;
  const bool is_one = std::ranges::all_of(
      answers, [&](const Scored& answer) { return answer.question->type == type; });
  return std::string(is_one ? to_string(type) : "mixed");
}

QuestionGroup group_of(const GroupKey& key, const std::vector<Judged>& all) {
  const std::vector<Scored> answers = answers_of(all);
  QuestionGroup group;
  group.summary = summarize(std::get<std::string>(key), all);
  group.is_skill = std::get<bool>(key);
  group.is_listed = all.front().is_listed;
  group.type = type_of(answers);
  group.classes = count_classes(answers);
  group.majority_class = majority_of(group.classes)->id;
  if (group.classes.size() <= kMostConfusedClasses) {
    group.confusions = count_confusions(answers, group.classes);
  }
  return group;
}

MissedExpectation missed_of(const Case& entry, const Scored& answer) {
  const Question& question = *answer.question;
  return {.line = entry.line,
          .name = entry.name,
          .question = question.id,
          .expected = question.options[answer.expected].id,
          .chosen = question.options[answer.chosen()].id,
          .probability = answer.probabilities[answer.expected]};
}

Json expectations_to_json(const Expectations& counts, bool is_compared) {
  Json json =
      Json::object({{"count", std::uint64_t{counts.count}}, {"met", std::uint64_t{counts.met}}});
  if (is_compared) {
    json.set("met_against", std::uint64_t{counts.met_against});
    json.set("met_by_both", std::uint64_t{counts.met_by_both});
  }
  return json;
}

// The members of a summary, its metrics among them.
Json summary_to_json(const Summary& summary, bool is_compared) {
  Json json = metrics_to_json(summary.metrics);
  json.set("majority", summary.majority);
  json.set("macro_f1", summary.macro_f1);
  json.set("expectations", expectations_to_json(summary.expectations, is_compared));
  return json;
}

Json confusion_to_json(const QuestionGroup& group) {
  if (group.confusions.empty()) return {};
  Json classes = Json::array(), rows = Json::array();
  for (const ClassCounts& each : group.classes) classes.push_back(each.id);
  for (const std::vector<std::size_t>& counts : group.confusions) {
    Json row = Json::array();
    for (const std::size_t count : counts) row.push_back(std::uint64_t{count});
    rows.push_back(std::move(row));
  }
  return Json::object({{"classes", std::move(classes)}, {"counts", std::move(rows)}});
}

Json group_to_json(const QuestionGroup& group, bool is_compared) {
  Json json = Json::object({{"name", group.summary.name},
                            {"skill", group.is_skill},
                            {"listed", group.is_listed},
                            {"type", group.type},
                            {"classes", std::uint64_t{group.classes.size()}},
                            {"majority_class", group.majority_class}});
  Json summary = summary_to_json(group.summary, is_compared);
  std::ranges::move(summary.members(), std::back_inserter(json.members()));
  json.set("confusion", confusion_to_json(group));
  return json;
}

}  // namespace

Evaluation evaluate(const DataSet& set, const Probabilities& found,
                    const std::optional<Probabilities>& against,
                    const std::optional<std::set<std::string>>& listed) {
  assert(found.size() == set.requests.size());
  Evaluation evaluation;
  evaluation.requests = set.requests.size();
  evaluation.questions = set.question_count();
  std::vector<Judged> all;
  std::map<GroupKey, std::size_t> numbers;
  std::vector<GroupKey> keys;
  for (std::size_t r = 0; r < set.requests.size(); ++r) {
    const Case& entry = set.cases[r];
    for (std::size_t q = 0; q < entry.expected.size(); ++q) {
      if (!entry.expected[q]) continue;
      const Question& question = set.requests[r].questions[q];
      const std::string& skill = entry.skills[q];
      const bool is_skill = !skill.empty();
      const GroupKey key{is_skill, is_skill ? skill : question.id,
                         is_skill ? QuestionType::kNoul : question.type};
      const auto [number, is_new] = numbers.emplace(key, keys.size());
      if (is_new) keys.push_back(key);
      Judged judged{.answer = {&question, found[r][q], *entry.expected[q]},
                    .group = number->second,
                    .is_listed = !is_skill || !listed || listed->contains(skill)};
      judged.is_met_against = against && most_likely((*against)[r][q]) == *entry.expected[q];
      if (!judged.answer.is_met()) evaluation.missed.push_back(missed_of(entry, judged.answer));
      all.push_back(judged);
    }
  }
  const std::vector<Judged> counted =
      those(all, [](const Judged& judged) { return judged.is_listed; });
  evaluation.whole = summarize("all", counted);
  for (const auto type : {QuestionType::kNoul, QuestionType::kChoice, QuestionType::kScore}) {
    const std::vector<Judged> of_type =
        those(counted, [&](const Judged& judged) { return judged.answer.question->type == type; });
    if (!of_type.empty()) {
      evaluation.types.push_back(summarize(std::string(to_string(type)), of_type));
    }
  }
  std::vector<std::vector<Judged>> groups(keys.size());
  for (const Judged& judged : all) groups[judged.group].push_back(judged);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    evaluation.groups.push_back(group_of(keys[i], groups[i]));
  }
  evaluation.unlisted =
      count_expectations(those(all, [](const Judged& judged) { return !judged.is_listed; }));
  if (against) evaluation.drift = compare_probabilities(set.requests, found, *against);
  return evaluation;
}

Json evaluation_to_json(const Evaluation& evaluation, double margin) {
  const bool is_compared = evaluation.drift.has_value();
  Json types = Json::object(), groups = Json::array(), missed = Json::array();
  for (const Summary& type : evaluation.types) {
    types.set(type.name, summary_to_json(type, is_compared));
  }
  for (const QuestionGroup& group : evaluation.groups) {
    groups.push_back(group_to_json(group, is_compared));
  }
  for (const MissedExpectation& miss : evaluation.missed) {
    missed.push_back(Json::object({{"line", std::uint64_t{miss.line}},
                                   {"name", miss.name},
                                   {"question", miss.question},
                                   {"expected", miss.expected},
                                   {"chosen", miss.chosen},
                                   {"probability", miss.probability}}));
  }
  return Json::object(
      {{"requests", std::uint64_t{evaluation.requests}},
       {"questions", std::uint64_t{evaluation.questions}},
       {"all", summary_to_json(evaluation.whole, is_compared)},
       {"unlisted", expectations_to_json(evaluation.unlisted, is_compared)},
       {"types", std::move(types)},
       {"groups", std::move(groups)},
       {"missed", std::move(missed)},
       {"drift", evaluation.drift ? drift_to_json(*evaluation.drift, margin) : Json()}});
}

}  // namespace clefkit
