#include "clefkit/mil/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "clefkit/base/error.h"
#include "clefkit/base/half.h"
#include "clefkit/mil/bit_packing.h"

namespace clefkit::mil {
namespace {

constexpr std::size_t kMaxRank = 8;
constexpr std::int64_t kMaxDimension = std::int64_t{1} << 31;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool fits(std::int64_t value, DataType type) {
  const auto blob = blob_type(type);
  if (!blob) return value >= 0;  // kUInt64, as far as we go; a bool is read as 0 or 1.
  const unsigned bits = bits_per_element(*blob);
  const bool is_signed = to_string(type).starts_with("int");
  const std::int64_t most = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return value <= most && value >= (is_signed ? -most - 1 : 0);
}

double rounded(double value, DataType type) {
  return type == DataType::kFloat32 ? static_cast<float>(value) : to_float(to_half(value));
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Program program() {
    Program program;
    expect_word("program");
    expect("(");
    program.version = std::string(version());
    expect(")");
    program.build_info = build_info();
    expect("{");
    while (!accept("}")) program.functions.push_back(function());
    skip_blanks();
    if (at_ != text_.size()) fail("the end of the text");
    return program;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const { fail_at(at_, expected); }

  [[noreturn]] void fail_at(std::size_t at, std::string_view expected) const {
    const std::size_t end = std::min(text_.find_first_of("\r\n", at), text_.size());
    std::string found(text_.substr(at, std::min<std::size_t>(end - at, 24)));
    if (at >= text_.size()) found = "the end of the text";
    throw_error(ErrorCode::kCorruptData, fmt::format("{}:{}", where_, line_at(at)),
                "found {}, expected {}", found.empty() ? "the end of the line" : found, expected);
  }

  std::size_t line_at(std::size_t at) const {
    const std::string_view before = text_.substr(0, at);
    return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  }

  void skip_blanks() {
    for (; at_ < text_.size() && is_blank(text_[at_]); ++at_) {
      if (text_[at_] == '\n') ++line_;
    }
  }

  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("\"{}\"", token));
  }

  std::string_view name(std::string_view what) {
    skip_blanks();
    if (at_ >= text_.size() || !is_name_start(text_[at_])) fail(what);
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void expect_word(std::string_view word) {
    skip_blanks();
    const std::size_t begin = at_;
    if (name(fmt::format("\"{}\"", word)) != word) fail_at(begin, fmt::format("\"{}\"", word));
  }

  std::string_view version() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    if (at_ == begin) fail("a version such as 1.3");
    return text_.substr(begin, at_ - begin);
  }

  std::vector<std::pair<std::string, std::string>> build_info() {
    std::vector<std::pair<std::string, std::string>> pairs;
    expect("[");
    expect_word("buildInfo");
    expect("=");
    expect_word("dict");
    expect("<");
    expect_word("string");
    expect(",");
    expect_word("string");
    expect(">");
    expect("(");
    expect("{");
    while (!accept("}")) {
      if (!pairs.empty()) expect(",");
      expect("{");
      std::string key = quoted();
      expect(",");
      pairs.emplace_back(std::move(key), quoted());
      expect("}");
    }
    expect(")");
    expect("]");
    return pairs;
  }

  std::string quoted() {
    expect("\"");
    std::string text;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') fail("a closing quote");
      const char c = text_[at_++];
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (at_ >= text_.size()) fail("a character after the backslash");
      const char escaped = text_[at_++];
      text += escaped == 'n' ? '\n' : escaped;
    }
  }

  Function function() {
    Function function;
    expect_word("func");
    function.name = name("the function's name");
    expect("<");
    function.opset = name("an operation set such as ios18");
    expect(">");
    expect("(");
    while (!accept(")")) {
      if (!function.inputs.empty()) expect(",");
      function.inputs.push_back(variable());
    }
    expect("{");
    while (!accept("}")) function.statements.push_back(statement());
    expect("->");
    expect("(");
    do {
      function.outputs.emplace_back(name("an output's name"));
    } while (accept(","));
    expect(")");
    expect(";");
    return function;
  }

  Variable variable() {
    Variable variable;
    variable.type = type();
    variable.name = name("a name");
    return variable;
  }

  Statement statement() {
    Statement statement;
    skip_blanks();
    statement.line = line_;
    do {
      statement.outputs.push_back(variable());
    } while (accept(","));
    expect("=");
    statement.op = name("an operation");
    expect("(");
    while (!accept(")")) {
      if (!statement.arguments.empty()) expect(",");
      const std::size_t begin = at_;
      std::string key(name("an argument's name"));
      if (statement.argument(key) != nullptr) fail_at(begin, "each argument once");
      expect("=");
      statement.arguments.emplace_back(std::move(key), argument());
    }
    expect("[");
    while (!accept("]")) {
      if (!statement.attributes.empty()) expect(",");
      const std::size_t begin = at_;
      std::string key(name("an attribute's name"));
      if (statement.attribute(key) != nullptr) fail_at(begin, "each attribute once");
      expect("=");
      statement.attributes.emplace_back(std::move(key), value());
    }
    expect(";");
    return statement;
  }

  Argument argument() {
    if (accept("(")) {
      std::vector<std::string> names;
      do {
        names.emplace_back(name("a name"));
      } while (accept(","));
      expect(")");
      return names;
    }
    skip_blanks();
    const std::size_t begin = at_, line = line_;
    const std::string_view word = name("a name, a tuple of names or a value");
    const bool is_value = word == "tensor" || (data_type(word) && accept("("));
    if (!is_value) return std::string(word);
    at_ = begin;
    line_ = line;
    return value();
  }

  ValueType type() {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string_view word = name("a type");
    if (word != "tensor") {
      const auto scalar = data_type(word);
      if (!scalar) fail_at(begin, "a type");
      return {*scalar};
    }
    ValueType type;
    expect("<");
    skip_blanks();
    const std::size_t element = at_;
    const auto element_type = data_type(name("an element type"));
    if (!element_type) fail_at(element, "an element type");
    type.data_type = *element_type;
    expect(",");
    expect("[");
    std::int64_t count = 1;
    while (!accept("]")) {
      if (!type.shape.empty()) expect(",");
      const std::int64_t size = dimension();
      if (type.shape.size() == kMaxRank) fail(fmt::format("at most {} dimensions", kMaxRank));
      type.shape.push_back(size);
      count *= std::max<std::int64_t>(size, 1);
      if (count > kMaxElements) fail_at(begin, "a tensor of at most 2^40 elements");
    }
    expect(">");
    return type;
  }

  std::int64_t dimension() {
    skip_blanks();
    const std::size_t begin = at_;
    const std::int64_t size = integer();
    if (size < 0 || size > kMaxDimension) fail_at(begin, "a dimension from 0 to 2^31");
    return size;
  }

  std::int64_t integer() {
    skip_blanks();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("an integer");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  double floating() {
    skip_blanks();
    const std::size_t begin = at_;
    const bool is_negative = at_ < text_.size() && text_[at_] == '-';
    if (is_negative) ++at_;
    const bool is_hexadecimal = text_.substr(at_).starts_with("0x");
    if (is_hexadecimal) at_ += 2;
    // No second sign: from_chars would take one.
    if (at_ >= text_.size() || text_[at_] == '-') fail_at(begin, "a number");
    double value = 0;
    const char* const first = text_.data() + at_;
    const auto [end, error] =
        std::from_chars(first, text_.data() + text_.size(), value,
                        is_hexadecimal ? std::chars_format::hex : std::chars_format::general);
    if (error != std::errc()) fail_at(begin, "a number");
    at_ += static_cast<std::size_t>(end - first);
    return is_negative ? -value : value;
  }

  bool boolean() {
    if (accept("true")) return true;
    if (accept("false")) return false;
    fail("true or false");
  }

  Value value() {
    skip_blanks();
    const std::size_t begin = at_;
    Value value;
    value.type = type();
    expect("(");
    if (accept("BLOBFILE")) {
      if (!blob_type(value.type.data_type)) fail_at(begin, "a type that weight files have");
      value.elements = blob_reference();
    } else if (is_float(value.type.data_type)) {
      value.elements = elements<double>(value.type, [&] { return held_float(value.type); });
    } else if (value.type.data_type == DataType::kString) {
      value.elements = elements<std::string>(value.type, [&] { return quoted(); });
    } else {
      value.elements = elements<std::int64_t>(value.type, [&] { return held_integer(value.type); });
    }
    expect(")");
    return value;
  }

  double held_float(const ValueType& type) {
    skip_blanks();
    const std::size_t begin = at_;
    const double value = floating();
    const double held = rounded(value, type.data_type);
    const bool is_decimal = text_.substr(begin, at_ - begin).find("0x") == std::string_view::npos;
    if (std::isnan(value) || held == value || (is_decimal && std::isfinite(held))) return held;
    fail_at(begin, fmt::format("a number that {} holds", to_string(type.data_type)));
  }

  std::int64_t held_integer(const ValueType& type) {
    if (type.data_type == DataType::kBool) return boolean() ? 1 : 0;
    skip_blanks();
    const std::size_t begin = at_;
    const std::int64_t value = integer();
    if (!fits(value, type.data_type)) {
      fail_at(begin, fmt::format("a number within {}", to_string(type.data_type)));
    }
    return value;
  }

  // The elements of a value, written as lists within lists by its shape. A list may not claim more
  // than the text holds, so nothing is reserved.
  template <typename Element, typename Read>
  std::vector<Element> elements(const ValueType& type, Read&& read) {
    std::vector<Element> values;
    add_elements(type, 0, read, values);
    return values;
  }

  template <typename Element, typename Read>
  void add_elements(const ValueType& type, std::size_t dimension, Read& read,
                    std::vector<Element>& values) {
    if (dimension == type.shape.size()) {
      values.push_back(read());
      return;
    }
    expect("[");
    for (std::int64_t i = 0; i < type.shape[dimension]; ++i) {
      if (i > 0) expect(",");
      add_elements(type, dimension + 1, read, values);
    }
    expect("]");
  }

  BlobReference blob_reference() {
    BlobReference blob;
    expect("(");
    expect_word("path");
    expect("=");
    blob.path = std::get<std::vector<std::string>>(scalar(DataType::kString).elements)[0];
    expect(",");
    expect_word("offset");
    expect("=");
    const Value offset = scalar(DataType::kUInt64);
    blob.offset =
        static_cast<std::uint64_t>(std::get<std::vector<std::int64_t>>(offset.elements)[0]);
    expect(")");
    return blob;
  }

  Value scalar(DataType type) {
    skip_blanks();
    const std::size_t begin = at_;
    Value found = value();
    if (found.type != ValueType{type} || std::holds_alternative<BlobReference>(found.elements)) {
      fail_at(begin, fmt::format("a {}", to_string(type)));
    }
    return found;
  }

  const std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

Program parse_program(std::string_view text, const std::string& where) {
  return Parser(text, where).program();
}

}  // namespace clefkit::mil
