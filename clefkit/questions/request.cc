#include "clefkit/questions/request.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/lines.h"
#include "clefkit/questions/json_members.h"

namespace clefkit {
namespace {

constexpr std::string_view kDefaultTrue = "The proposition is true or the answer is yes.";
constexpr std::string_view kDefaultFalse = "The proposition is false or the answer is no.";
constexpr std::string_view kTypes = "noul, choice or score";

// The parser has seen to this in a request's text, but not in JSON that a caller put together.
void require_unique_keys(const Json::Object& members, const std::string& where) {
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : members) {
    if (!keys.insert(key).second)
      refuse_invalid(where, "{} stands twice, expected once", in_quotes(key));
  }
}

void require_count(std::size_t count, CountRange range, std::string_view noun,
                   const std::string& where) {
  if (count >= range.min && count <= range.max) return;
  refuse_invalid(where, "{} {}, expected {} to {}", count, noun, range.min, range.max);
}

std::optional<Json> description_of(Json value) {
  if (value.is_null()) return std::nullopt;
  return value;
}

std::vector<Option> noul_options(Json* criteria, const std::string& where) {
  if (criteria != nullptr && !criteria->is_null() && !criteria->is_object()) {
    refuse_invalid(where, "{}, expected an object with the descriptions of true and false",
                   found(criteria));
  }
  std::vector<Option> options{{"true", Json(kDefaultTrue), true},
                              {"false", Json(kDefaultFalse), true}};
  for (Option& option : options) {
    if (criteria == nullptr) break;
    if (Json* given = find_member(*criteria, option.id)) {
      option = {option.id, description_of(std::move(*given))};
    }
  }
  return options;
}

std::vector<Option> choice_options(Json* criteria, CountRange range, const std::string& where) {
  if (criteria == nullptr || !criteria->is_object()) {
    refuse_invalid(where, "{}, expected an object from option to description", found(criteria));
  }
  Json::Object& members = criteria->members();
  require_count(members.size(), range, "options", where);
  require_unique_keys(members, where);
  std::vector<Option> options;
  for (auto& [id, description] : members) {
    if (id.empty())
      refuse_invalid(where, "an option with the id \"\", expected at least one character");
    options.push_back({std::move(id), description_of(std::move(description))});
  }
  return options;
}

std::vector<Option> score_options(const Json* criteria, CountRange range,
                                  const std::string& where) {
  if (criteria == nullptr || !criteria->is_array()) {
    refuse_invalid(where, "{}, expected an array of levels from low to high", found(criteria));
  }
  require_count(criteria->items().size(), range, "levels", where);
  std::vector<Option> options;
  for (const Json& level : criteria->items()) {
    options.push_back({fmt::format("{}", options.size()), description_of(level)});
  }
  return options;
}

QuestionType read_type(const Json* type, const std::string& where) {
  if (type != nullptr && type->is_string()) {
    for (const auto known : {QuestionType::kNoul, QuestionType::kChoice, QuestionType::kScore}) {
      if (type->string() == to_string(known)) return known;
    }
  }
  refuse_invalid(where, "{}, expected {}", found(type), kTypes);
}

Question read_question(std::string id, Json json, const RequestLimits& limits) {
  const std::string where = question_place(id);
  if (!json.is_object()) refuse_invalid(where, "{}, expected an object", found(&json));
  require_unique_keys(json.members(), where);
  Question question;
  question.id = std::move(id);
  question.type = read_type(find_member(json, "type"), where + ".type");
  Json* criteria = find_member(json, "criteria");
  switch (question.type) {
    case QuestionType::kNoul:
      question.options = noul_options(criteria, where + ".criteria");
      break;
    case QuestionType::kChoice:
      question.options = choice_options(criteria, limits.options, where + ".criteria");
      break;
    case QuestionType::kScore:
      question.options = score_options(criteria, limits.levels, where + ".criteria");
      question.legend = std::move(criteria->items());
      break;
  }
  Json* instructions = find_value(json, "instructions");
  if (instructions != nullptr && !(instructions->is_string() && instructions->string().empty())) {
    question.instructions = std::move(*instructions);
  } else if (question.id.empty()) {
    // The head reads the tokens of one or the other; of nothing it would take the mean.
    refuse_invalid(where + ".instructions",
                   "missing, expected some where the question's id is empty");
  }
  return question;
}

std::vector<Question> read_questions(Json* json, const RequestLimits& limits) {
  const std::string where = "questions";
  if (json == nullptr || !json->is_object()) {
    refuse_invalid(where, "{}, expected an object from id to question", found(json));
  }
  Json::Object& members = json->members();
  if (members.empty()) refuse_invalid(where, "empty, expected at least one question");
  if (limits.max_questions && members.size() > *limits.max_questions) {
    refuse_invalid(where, "{} questions, expected at most {}", members.size(),
                   *limits.max_questions);
  }
  require_unique_keys(members, where);
  std::vector<Question> questions;
  for (auto& [id, question] : members) {
    questions.push_back(read_question(std::move(id), std::move(question), limits));
  }
  return questions;
}

std::vector<MediaSource> read_media(Json& request, const std::string& key) {
  Json* items = find_value(request, key);
  if (items == nullptr) return {};
  if (!items->is_array()) refuse_invalid(key, "{}, expected an array", found(items));
  std::vector<MediaSource> media;
  for (Json& item : items->items()) {
    media.push_back({std::move(item), fmt::format("{}[{}]", key, media.size())});
  }
  return media;
}

}  // namespace

std::string_view to_string(QuestionType type) {
  static constexpr std::array<std::string_view, 3> kNames{"noul", "choice", "score"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string question_place(std::string_view question_id) {
  return question_place("questions", question_id);
}

std::string question_place(std::string_view object, std::string_view question_id) {
  const std::string name = in_quotes(question_id);
  // The quotes stay where the id could be taken for more or less than it is.
  const bool is_plain = name.size() == question_id.size() + 2 && !question_id.empty() &&
                        question_id.find_first_of(". ") == question_id.npos;
  return fmt::format("{}.{}", object, is_plain ? question_id : name);
}

bool is_opaque_in_request(std::span<const std::string_view> path) {
  if (path.empty() || path[0] == "images" || path[0] == "videos" || path[0] == "media_kwargs") {
    return false;
  }
  if (path[0] != "questions") return true;
  return path.size() > 3 || (path.size() == 3 && path[2] != "criteria");
}

JsonLimits json_limits_of(const RequestLimits& limits) {
  return {.bytes = limits.bytes,
          .depth = limits.depth,
          .values = limits.values,
          .duplicates = DuplicateKeys::kReject,
          .last_wins_at = is_opaque_in_request,
          .error = ErrorCode::kInvalidArgument};
}

Request parse_request(std::string_view json, const std::string& where,
                      const RequestLimits& limits) {
  return request_from_json(parse_json(json, where, json_limits_of(limits)), where, limits);
}

std::vector<Request> parse_request_lines(std::string_view lines, const std::string& where) {
  std::vector<Request> requests;
  for (const Line& line : filled_lines(lines)) {
    const std::string place = fmt::format("{} line {}", where, line.number);
    requests.push_back(at_place(place, [&] { return parse_request(line.text, place); }));
    requests.back().place = place;
  }
  if (requests.empty()) {
    throw_error(ErrorCode::kInvalidArgument, where, "no requests, expected one a line");
  }
  return requests;
}

Request request_from_json(Json json, const std::string& where, const RequestLimits& limits) {
  if (!json.is_object()) refuse_invalid(where, "{}, expected an object", found(&json));
  require_unique_keys(json.members(), where);
  Request request;
  if (Json* model = find_value(json, "model")) {
    if (!model->is_string()) refuse_invalid("model", "{}, expected a string", found(model));
    request.model = std::move(model->string());
  }
  Json* state = find_member(json, "state");
  if (state == nullptr) refuse_invalid("state", "missing, expected any JSON value");
  request.state = std::move(*state);
  request.questions = read_questions(find_member(json, "questions"), limits);
  request.images = read_media(json, "images");
  request.videos = read_media(json, "videos");
  if (Json* kwargs = find_value(json, "media_kwargs")) {
    if (!kwargs->is_object())
      refuse_invalid("media_kwargs", "{}, expected an object", found(kwargs));
    request.media_kwargs = std::move(*kwargs);
  }
  return request;
}

}  // namespace clefkit
