#include "clefkit/server/workers_ai_rules.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void check_members(const Json& object, std::initializer_list<std::string_view> known,
                   const std::string& where) {
  for (const auto& [name, value] : object.members()) {
    if (std::ranges::find(known, name) == known.end()) {
      refuse_invalid(where, "the unknown field {}", in_quotes(name));
    }
  }
}

const Json& require_member(const Json& object, const std::string& name, const std::string& where) {
  const Json* const value = object.find(name);
  if (value == nullptr) {
    refuse_invalid(where.empty() ? name : where + "." + name, "missing, expected a value");
  }
  return *value;
}

void require_object(const Json& value, const std::string& where) {
  if (!value.is_object()) refuse_invalid(where, "{}, expected an object", found(&value));
}

// What may be shown to the model.
void require_content(const Json& value, const std::string& where) {
  if (value.is_string() || value.is_object() || value.is_array()) return;
  refuse_invalid(where, "{}, expected a string, an object or an array", found(&value));
}

bool is_empty(const Json& value) {
  return value == Json("") || value == Json::array() || value == Json::object();
}

void check_question_id(const std::string& id) {
  constexpr std::size_t kLongest = 100;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  if (id.empty() || id.size() > kLongest || !std::ranges::all_of(id, is_allowed)) {
    refuse_invalid(question_place(id),
                   "a question's id, expected 1 to {} letters, digits, \"_\", \".\" or \"-\"",
                   kLongest);
  }
}

// Types and counts are seen to when the request is read.
void check_criteria(const Json& criteria, std::string_view type, const std::string& where) {
  if (criteria.is_object()) {
    if (type == "noul") check_members(criteria, {"true", "false"}, where);
    for (const auto& [option, description] : criteria.members()) {
      if (description.is_null()) continue;
      require_content(description, fmt::format("{}.{}", where, in_quotes(option)));
    }
  } else if (criteria.is_array()) {
    for (std::size_t i = 0; i < criteria.items().size(); ++i) {
      require_content(criteria.items()[i], fmt::format("{}[{}]", where, i));
    }
  }
}

void check_question(const std::string& id, const Json& question) {
  const std::string where = question_place(id);
  check_question_id(id);
  require_object(question, where);
  check_members(question, {"type", "instructions", "criteria"}, where);
  const Json& type = require_member(question, "type", where);
  const Json& instructions = require_member(question, "instructions", where);
  require_content(instructions, where + ".instructions");
  if (is_empty(instructions)) {
    refuse_invalid(where + ".instructions", "empty, expected at least one character or member");
  }
  if (const Json* const criteria = question.find("criteria"); criteria && type.is_string()) {
    check_criteria(*criteria, type.string(), where + ".criteria");
  }
}

void check_content_type(std::string_view type, const std::string& where) {
  constexpr std::string_view kTypes[] = {"image/png", "image/jpeg", "image/jpg", "image/webp"};
  if (std::ranges::find(kTypes, type) == std::end(kTypes)) {
    refuse_invalid(where, "{}, expected image/png, image/jpeg or image/webp", in_quotes(type));
  }
}

// The base64 text of an image, after a look at the type it declares.
std::string_view base64_of(const Json& image, const std::string& where) {
  constexpr std::string_view kEncoding = ";base64";
  if (image.is_object()) {
    check_members(image, {"content_type", "base64"}, where);
    const Json& type = require_member(image, "content_type", where);
    const Json& base64 = require_member(image, "base64", where);
    if (!type.is_string() || !base64.is_string()) {
      refuse_invalid(where, "members that are no strings, expected content_type and base64 texts");
    }
    check_content_type(type.string(), where + ".content_type");
    return base64.string();
  }
  const std::string_view url = image.is_string() ? std::string_view(image.string()) : "";
  const std::size_t comma = url.find(',');
  if (!url.starts_with("data:") || comma == url.npos ||
      !url.substr(0, comma).ends_with(kEncoding)) {
    refuse_invalid(where, "{}, expected data:TYPE;base64,… or {{\"content_type\", \"base64\"}}",
                   found(&image));
  }
  check_content_type(url.substr(5, comma - 5 - kEncoding.size()), where);
  return url.substr(comma + 1);
}

void check_images(const Json& images) {
  constexpr std::size_t kMost = 4, kMostBytes = 4 * kMiB, kMostBytesInAll = 8 * kMiB;
  if (!images.is_array()) refuse_invalid("images", "{}, expected an array", found(&images));
  if (images.items().size() > kMost) {
    refuse_invalid("images", "{} images, expected at most {}", images.items().size(), kMost);
  }
  std::size_t in_all = 0;
  for (std::size_t i = 0; i < images.items().size(); ++i) {
    const std::string where = fmt::format("images[{}]", i);
    std::string_view text = base64_of(images.items()[i], where);
    while (text.ends_with('=')) text.remove_suffix(1);
    const std::size_t bytes = text.size() * 3 / 4;
    if (bytes > kMostBytes) {
      refuse_invalid(where, "{} bytes, expected at most {}", bytes, kMostBytes);
    }
    in_all += bytes;
  }
  if (in_all > kMostBytesInAll) {
    refuse_invalid("images", "{} bytes in all, expected at most {}", in_all, kMostBytesInAll);
  }
}

}  // namespace

void check_workers_ai_body(const Json& body) {
  require_object(body, "body");
  check_members(body, {"model", "state", "questions", "images", "options"}, "body");
  require_content(require_member(body, "state", ""), "state");
  const Json& questions = require_member(body, "questions", "");
  if (questions.is_object()) {
    for (const auto& [id, question] : questions.members()) check_question(id, question);
  }
  if (const Json* const images = body.find("images")) check_images(*images);
  if (const Json* const options = body.find("options")) {
    require_object(*options, "options");
    check_members(*options, {}, "options");
  }
}

Json workers_ai_envelope(Json result) {
  return Json::object({{"result", std::move(result)},
                       {"success", true},
                       {"errors", Json::array()},
                       {"messages", Json::array()}});
}

}  // namespace clefkit::server
