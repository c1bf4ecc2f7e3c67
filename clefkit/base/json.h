#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {

// A JSON value that keeps what the prompt needs and ordinary libraries lose: numbers stay the
// digits that were written (an integer of any length is exact), members stay in order.
// Objects that callers build or parse are small or only iterated; find() is a linear search.
class Json {
 public:
  // A number as its JSON text, e.g. `1250.0`, `-0`, `1e999`.
  struct Number {
    std::string text;
    bool is_integer() const { return text.find_first_of(".eE") == std::string::npos; }
    friend bool operator==(const Number&, const Number&) = default;
  };
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : Json(static_cast<std::int64_t>(value)) {}
  Json(std::int64_t value);
  Json(std::uint64_t value);
  // The shortest digits that give the same double; integral values get `.0`. Not finite: null.
  Json(double value);
  Json(Number number) : value_(std::move(number)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(Array items) : value_(std::move(items)) {}
  Json(Object members) : value_(std::move(members)) {}
  static Json array(std::initializer_list<Json> items = {}) { return Json(Array(items)); }
  static Json object(std::initializer_list<Member> members = {}) { return Json(Object(members)); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_number() const { return std::holds_alternative<Number>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // "null", "a boolean", "a number", "a string", "an array" or "an object", for messages.
  std::string_view kind_name() const;

  // Unchecked: the caller has asked is_…() before.
  bool boolean() const { return std::get<bool>(value_); }
  const Number& number() const { return std::get<Number>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  std::string& string() { return std::get<std::string>(value_); }
  const Array& items() const { return std::get<Array>(value_); }
  Array& items() { return std::get<Array>(value_); }
  const Object& members() const { return std::get<Object>(value_); }
  Object& members() { return std::get<Object>(value_); }

  // The member of that name, or nullptr; also nullptr when this is no object.
  const Json* find(std::string_view key) const;
  // Appends to an object (a key the caller knows to be new) or an array.
  Json& set(std::string key, Json value);
  Json& push_back(Json value);

  // Empty when this is no number, no integer, or out of range.
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  // Empty when this is no number. Overflow gives an infinity, as Python's float() does.
  std::optional<double> as_double() const;

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> value_;
};

enum class DuplicateKeys { kReject, kLastWins };

struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;
  // Scalars and containers together: each takes some forty bytes, however few its text has.
  std::size_t values = 16'000'000;
  DuplicateKeys duplicates = DuplicateKeys::kReject;
  // Takes the member names that lead to a container ("[]" for each array on the way). Where it says
  // true, the last value wins in there and all the way down, whatever `duplicates` says.
  bool (*last_wins_at)(std::span<const std::string_view> path) = nullptr;
  // What the text is wrong *as*: a request (kInvalidArgument) or a model file (kCorruptData).
  ErrorCode error = ErrorCode::kCorruptData;
};

// The only JSON parser, our own because no packaged library hands over numbers as written once they
// leave a double's range. UTF-8, RFC 8259 and nothing beyond it; never recurses on the input.
// Throws Error(limits.error) with `where`, the byte offset, and what was found.
// With kLastWins a repeated key keeps its first place and its last value, as in Python.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits);

// Compact JSON: no spaces, members in order, only `"`, `\` and controls escaped.
std::string to_string(const Json& value);
// The same with two spaces of indentation, for files that people read.
std::string to_pretty_string(const Json& value);
// Appends `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

// Shortest digits that give the same double, printed as Python's repr: `1250.0`, `1e-05`, `inf`.
std::string python_repr(double value);

}  // namespace clefkit
