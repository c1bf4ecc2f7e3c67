#include "clefkit/questions/json_members.h"

#include <algorithm>
#include <utility>

#include "clefkit/base/utf8.h"

namespace clefkit {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string kept;
  std::size_t at = 0;
  while (at < text.size() && at < kLongest) {
    const std::size_t length = utf8_sequence_length(text.substr(at));
    kept += length == 0 ? "\uFFFD" : text.substr(at, length);
    at += std::max(length, std::size_t{1});
  }
  std::string out;
  append_json_string(out, kept);
  return at < text.size() ? out + "…" : out;
}

std::string found(const Json* value) {
  if (value == nullptr) return "missing";
  return value->is_string() ? in_quotes(value->string()) : std::string(value->kind_name());
}

Json* find_member(Json& object, std::string_view key) {
  return const_cast<Json*>(std::as_const(object).find(key));
}

Json* find_value(Json& object, std::string_view key) {
  Json* const value = find_member(object, key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace clefkit
