#include "clefkit/server/openai_questions.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "clefkit/server/openai_content.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

constexpr OpenAiContentRules kInstructionRules{
    .input_text = true, .input_image = true, .input_json = true};

using Names = std::unordered_set<std::string>;

void require_count(const Json* list, CountRange range, const std::string& where) {
  if (list == nullptr || !list->is_array()) {
    refuse_invalid(where, "{}, expected a list", found(list));
  }
  const std::size_t count = list->items().size();
  if (count < range.min || count > range.max) {
    refuse_invalid(where, "{} entries, expected {} to {}", count, range.min, range.max);
  }
}

std::string question_place_at(std::size_t index) { return fmt::format("questions[{}]", index); }

// The names that questions have; each at most once, because they become ids.
Names names_of(Json& questions) {
  Names names;
  for (std::size_t i = 0; i < questions.items().size(); ++i) {
    const std::string where = question_place_at(i);
    Json& question = questions.items()[i];
    if (!question.is_object()) refuse_invalid(where, "{}, expected an object", found(&question));
    const Json* const name = find_value(question, "name");
    if (name == nullptr) continue;
    if (!name->is_string()) refuse_invalid(where + ".name", "{}, expected a string", found(name));
    if (!name->string().empty() && !names.insert(name->string()).second) {
      refuse_invalid(where + ".name", "{} again, expected a name of its own", found(name));
    }
  }
  return names;
}

// The model reads the id, so an unnamed question's is short and depends on its place only.
std::string id_of(const Json* name, std::size_t index, const Names& names) {
  if (name != nullptr && !name->string().empty()) return name->string();
  std::string id = fmt::format("q{}", index + 1);
  while (names.contains(id)) id += '_';
  return id;
}

const Json* description_of(Json& entry, const std::string& where) {
  const Json* const description = find_value(entry, "description");
  if (description != nullptr && !description->is_string()) {
    refuse_invalid(where + ".description", "{}, expected a string", found(description));
  }
  return description;
}

// A choice's values with their places, checked: strings with a character at least, or booleans.
Json::Array values_of(Json& choices, const std::string& where) {
  Json::Array values;
  std::set<std::pair<bool, std::string>> known;
  for (std::size_t i = 0; i < choices.items().size(); ++i) {
    const std::string place = fmt::format("{}[{}].value", where, i);
    Json* const value = find_member(choices.items()[i], "value");
    const bool is_bool = value != nullptr && value->is_bool();
    if (!is_bool && (value == nullptr || !value->is_string() || value->string().empty())) {
      refuse_invalid(place, "{}, expected a string that is not empty, or a boolean", found(value));
    }
    if (!known.emplace(is_bool, is_bool ? to_string(*value) : value->string()).second) {
      refuse_invalid(place, "{} again, expected values that differ",
                     is_bool ? to_string(*value) : found(value));
    }
    values.push_back(*value);
  }
  return values;
}

// A boolean is the option of its name, unless a string has that name already.
std::string option_id(const Json& value, const Json::Array& values) {
  if (value.is_string()) return value.string();
  std::string id = to_string(value);
  while (std::ranges::find(values, Json(id)) != values.end()) id += " (boolean)";
  return id;
}

Json read_choices(Json* choices, const std::string& where, Json& memo) {
  require_count(choices, {2, 255}, where);
  Json::Array values = values_of(*choices, where);
  Json criteria = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Json* const description =
        description_of(choices->items()[i], fmt::format("{}[{}]", where, i));
    criteria.set(option_id(values[i], values), description == nullptr ? Json() : *description);
  }
  memo.set("values", std::move(values));
  return criteria;
}

Json read_levels(Json* levels, const std::string& where, Json& memo) {
  require_count(levels, {1, 255}, where);
  Json criteria = Json::array();
  Json labels = Json::array();
  for (std::size_t i = 0; i < levels->items().size(); ++i) {
    const std::string place = fmt::format("{}[{}]", where, i);
    const Json* const label = find_member(levels->items()[i], "label");
    if (label == nullptr || !label->is_string()) {
      refuse_invalid(place + ".label", "{}, expected a string", found(label));
    }
    const Json* const description = description_of(levels->items()[i], place);
    criteria.push_back(description == nullptr || description->string().empty()
                           ? label->string()
                           : label->string() + ": " + description->string());
    labels.push_back(*label);
  }
  memo.set("values", std::move(labels));
  return criteria;
}

// One question as System One has it.
Json read_question(Json& question, const std::string& where, std::vector<MediaSource>& images,
                   Json& memo) {
  const Json* const type = find_member(question, "type");
  const std::string name = type != nullptr && type->is_string() ? type->string() : "";
  if (name != "predicate" && name != "choice" && name != "score") {
    refuse_invalid(where + ".type", "{}, expected predicate, choice or score", found(type));
  }
  Json out = Json::object({{"type", name == "predicate" ? "noul" : name}});
  if (name == "choice") {
    out.set("criteria", read_choices(find_member(question, "choices"), where + ".choices", memo));
  } else if (name == "score") {
    out.set("criteria", read_levels(find_member(question, "levels"), where + ".levels", memo));
  }
  Json instructions = read_openai_content(find_member(question, "instructions"),
                                          where + ".instructions", kInstructionRules, images);
  if (instructions == Json("")) {
    refuse_invalid(where + ".instructions", "empty, expected at least one character");
  }
  out.set("instructions", std::move(instructions));
  return out;
}

Json choice_probabilities(const std::vector<double>& probabilities, const Json::Array& values) {
  Json list = Json::array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    list.push_back(Json::object({{"value", values[i]}, {"probability", probabilities[i]}}));
  }
  return list;
}

Json level_probabilities(const std::vector<double>& probabilities, const Json::Array& labels) {
  Json list = Json::array();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    list.push_back(Json::object(
        {{"label", labels[i]}, {"value", std::uint64_t{i}}, {"probability", probabilities[i]}}));
  }
  return list;
}

}  // namespace

OpenAiQuestions read_openai_questions(Json* questions, std::vector<MediaSource>& images) {
  require_count(questions, {1, 400}, "questions");
  const Names names = names_of(*questions);
  OpenAiQuestions out{Json::object(), Json::array()};
  for (std::size_t i = 0; i < questions->items().size(); ++i) {
    Json& question = questions->items()[i];
    const Json* const name = find_value(question, "name");
    Json memo = Json::object({{"name", name == nullptr ? Json() : *name}});
    std::string id = id_of(name, i, names);
    out.system_one.set(std::move(id), read_question(question, question_place_at(i), images, memo));
    out.memo.push_back(std::move(memo));
  }
  return out;
}

Json openai_answers(const std::vector<Question>& questions,
                    const std::vector<std::vector<double>>& probabilities, const Json& system_one,
                    const Json& memo) {
  Json answers = Json::array();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Json& from = system_one.members()[i].second;
    const Json& asked = memo.items()[i];
    const bool is_choice = questions[i].type == QuestionType::kChoice;
    Json answer = Json::object();
    if (questions[i].type == QuestionType::kNoul) {
      answer = Json::object({{"type", "predicate"},
                             {"name", *asked.find("name")},
                             {"probability", *from.find("noul")}});
    } else {
      const Json::Array& values = asked.find("values")->items();
      answer = Json::object({{"type", *from.find("type")}, {"name", *asked.find("name")}});
      answer.set(is_choice ? "choice" : "score",
                 is_choice ? values[most_likely(probabilities[i])] : *from.find("score"));
      answer.set("confidence", *from.find("confidence"));
      answer.set("probabilities", is_choice ? choice_probabilities(probabilities[i], values)
                                            : level_probabilities(probabilities[i], values));
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace clefkit::server
