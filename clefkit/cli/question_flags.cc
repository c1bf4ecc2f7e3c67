#include "clefkit/cli/question_flags.h"

#include <optional>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit::cli {
namespace {

// Position of the first `mark` that no backslash protects.
std::size_t find_mark(std::string_view text, char mark) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == mark) {
      return i;
    }
  }
  return std::string_view::npos;
}

// Drops surrounding spaces and the backslashes that protect a mark.
std::string plain(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() &&
        std::string_view(",|:=\\").find(text[i + 1]) != std::string_view::npos) {
      ++i;
    }
    out += text[i];
  }
  return out;
}

struct Halves {
  std::string before;
  std::optional<std::string> after;
};

Halves cut(std::string_view text, char mark) {
  const std::size_t at = find_mark(text, mark);
  if (at == std::string_view::npos) return {plain(text), std::nullopt};
  return {plain(text.substr(0, at)), plain(text.substr(at + 1))};
}

std::vector<std::string_view> pieces(std::string_view text) {
  const char mark = find_mark(text, '|') != std::string_view::npos ? '|' : ',';
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t at = find_mark(text, mark);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

// Splits "ID: INSTRUCTIONS=REST" and starts the question's object.
struct Question {
  std::string id;
  Json body = Json::object();
  std::string_view rest;
};

Question start(const char* flag, const char* type, std::string_view text) {
  const std::size_t equals = find_mark(text, '=');
  if (equals == std::string_view::npos) {
    throw_error(ErrorCode::kInvalidArgument, flag, "found \"{}\", expected ID=… (see --help)",
                text);
  }
  Question question;
  const Halves name = cut(text.substr(0, equals), ':');
  question.id = name.before;
  if (question.id.empty()) {
    throw_error(ErrorCode::kInvalidArgument, flag, "found \"{}\", expected an id before '='", text);
  }
  question.body.set("type", type);
  if (name.after) question.body.set("instructions", *name.after);
  question.rest = text.substr(equals + 1);
  return question;
}

}  // namespace

Json::Member parse_noul_flag(std::string_view text) {
  // Everything after the first '=' is the instruction, whatever marks it holds.
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return {plain(text), Json::object({{"type", "noul"}})};
  }
  const std::string id = plain(text.substr(0, equals));
  if (id.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "--noul", "found \"{}\", expected an id before '='",
                text);
  }
  return {id, Json::object({{"type", "noul"}, {"instructions", text.substr(equals + 1)}})};
}

Json::Member parse_choice_flag(std::string_view text) {
  Question question = start("--choice", "choice", text);
  Json criteria = Json::object();
  for (const std::string_view piece : pieces(question.rest)) {
    Halves option = cut(piece, ':');
    if (option.before.empty()) {
      throw_error(ErrorCode::kInvalidArgument, "--choice", "an empty option in \"{}\"", text);
    }
    if (criteria.find(option.before) != nullptr) {
      throw_error(ErrorCode::kInvalidArgument, "--choice",
                  "the option \"{}\" stands twice in \"{}\"", option.before, text);
    }
    criteria.set(option.before, option.after ? Json(*option.after) : Json());
  }
  question.body.set("criteria", std::move(criteria));
  return {question.id, std::move(question.body)};
}

Json::Member parse_score_flag(std::string_view text) {
  Question question = start("--score", "score", text);
  Json criteria = Json::array();
  for (const std::string_view piece : pieces(question.rest)) {
    std::string level = plain(piece);
    if (level.empty()) {
      throw_error(ErrorCode::kInvalidArgument, "--score", "an empty level in \"{}\"", text);
    }
    criteria.push_back(std::move(level));
  }
  question.body.set("criteria", std::move(criteria));
  return {question.id, std::move(question.body)};
}

}  // namespace clefkit::cli
