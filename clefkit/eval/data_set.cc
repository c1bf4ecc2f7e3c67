#include "clefkit/eval/data_set.h"

#include <algorithm>
#include <utility>

#include "clefkit/base/lines.h"
#include "clefkit/questions/json_members.h"

namespace clefkit {
namespace {

constexpr std::size_t kShownOptions = 8;

// What is said of answers means something, unlike members that nobody reads.
bool last_wins_at(std::span<const std::string_view> path) {
  const bool is_of_set = !path.empty() && (path[0] == "expected" || path[0] == "skills");
  return !is_of_set && is_opaque_in_request(path);
}

std::string shown(const Json& value) {
  if (value.is_bool()) return value.boolean() ? "true" : "false";
  return value.is_number() ? value.number().text.substr(0, 40) : found(&value);
}

std::string options_text(const Question& question) {
  std::string text;
  const std::size_t count = question.options.size();
  for (std::size_t i = 0; i < std::min(count, kShownOptions); ++i) {
    // Quoted where one could be taken for two.
    const std::string& id = question.options[i].id;
    const std::string quoted = in_quotes(id);
    const bool is_plain =
        quoted.size() == id.size() + 2 && id.find_first_of(" ,") == std::string::npos;
    text += (i == 0 ? "" : ", ") + (is_plain ? id : quoted);
  }
  if (count > kShownOptions) text += fmt::format(" and {} others", count - kShownOptions);
  return text;
}

std::size_t read_option(const Question& question, const Json& value, const std::string& where) {
  switch (question.type) {
    case QuestionType::kNoul:
      if (value.is_bool()) return value.boolean() ? 0 : 1;
      refuse_invalid(where, "{}, expected true or false", shown(value));
    case QuestionType::kChoice:
      if (value.is_string()) {
        const auto option = std::ranges::find(question.options, value.string(), &Option::id);
        if (option != question.options.end()) {
          return static_cast<std::size_t>(option - question.options.begin());
        }
      }
      refuse_invalid(where, "{}, expected one of {}", shown(value), options_text(question));
    case QuestionType::kScore: {
      const std::optional<std::uint64_t> level = value.as_uint64();
      if (level && *level < question.options.size()) return static_cast<std::size_t>(*level);
      refuse_invalid(where, "{}, expected a level, a whole number from 0 to {}", shown(value),
                     question.options.size() - 1);
    }
  }
  refuse_invalid(where, "a question of no known type");
}

// Calls `read` with each value that is not null, the index of its question and its place.
template <typename Read>
void read_by_question(Json* object, std::string_view name, const std::vector<Question>& questions,
                      Read&& read) {
  if (object == nullptr) return;
  if (!object->is_object()) {
    refuse_invalid(std::string(name), "{}, expected an object by question", shown(*object));
  }
  for (auto& [id, value] : object->members()) {
    const std::string where = question_place(name, id);
    const auto question = std::ranges::find(questions, id, &Question::id);
    if (question == questions.end()) {
      refuse_invalid(where, "no question of that id, expected one of the line's questions");
    }
    if (!value.is_null()) {
      read(static_cast<std::size_t>(question - questions.begin()), value, where);
    }
  }
}

Case read_case(Json& json, const std::string& name, const Request& request) {
  Case entry;
  entry.name = name;
  entry.expected.resize(request.questions.size());
  entry.skills.resize(request.questions.size());
  read_by_question(find_value(json, "expected"), "expected", request.questions,
                   [&](std::size_t question, const Json& value, const std::string& where) {
                     entry.expected[question] =
                         read_option(request.questions[question], value, where);
                   });
  read_by_question(find_value(json, "skills"), "skills", request.questions,
                   [&](std::size_t question, const Json& value, const std::string& where) {
                     if (!value.is_string() || value.string().empty()) {
                       refuse_invalid(where, "{}, expected the name of a skill", shown(value));
                     }
                     entry.skills[question] = value.string();
                   });
  return entry;
}

// Moved out, for reading when the request, which is made from the rest, is known.
Json take(Json& object, std::string_view key) {
  Json* const value = find_member(object, key);
  return value == nullptr ? Json() : std::exchange(*value, Json());
}

}  // namespace

std::size_t DataSet::question_count() const {
  std::size_t count = 0;
  for (const Case& entry : cases) count += entry.expected.size();
  return count;
}

std::size_t DataSet::expectation_count() const {
  std::size_t count = 0;
  for (const Case& entry : cases) {
    count += static_cast<std::size_t>(std::ranges::count_if(
        entry.expected, [](const auto& expected) { return expected.has_value(); }));
  }
  return count;
}

DataSet parse_data_set(std::string_view text, const std::string& source) {
  DataSet set;
  set.source = source;
  JsonLimits limits = json_limits_of({});
  limits.last_wins_at = last_wins_at;
  for (const Line& line : filled_lines(text)) {
    const std::string place = fmt::format("{} line {}", source, line.number);
    at_place(place, [&] {
      Json json = parse_json(line.text, place, limits);
      Json beside = Json::object();
      for (const char* key : {"expected", "skills"}) beside.set(key, take(json, key));
      std::string name;
      if (const Json* given = find_value(json, "name")) {
        if (!given->is_string()) refuse_invalid("name", "{}, expected a string", shown(*given));
        name = given->string();
      }
      Request request = request_from_json(std::move(json), place);
      Case entry = read_case(beside, name, request);
      entry.line = line.number;
      request.place = name.empty() ? place : fmt::format("{} ({})", place, in_quotes(name));
      set.requests.push_back(std::move(request));
      set.cases.push_back(std::move(entry));
    });
  }
  if (set.requests.empty()) refuse_invalid(source, "no requests, expected one a line");
  return set;
}

}  // namespace clefkit
