#include "clefkit/base/json.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "clefkit/base/utf8.h"

namespace clefkit {
namespace {

template <typename T>
std::string digits_of(T value) {
  return fmt::format("{}", value);
}

template <typename T>
std::optional<T> integer_of(const Json& value) {
  if (!value.is_number() || !value.number().is_integer()) return std::nullopt;
  const std::string& text = value.number().text;
  T result{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return result;
}

// Finds the member of a key among those read so far. A flat table of places, because the largest
// object, a tokenizer's vocabulary, has a quarter of a million keys and is read at every start.
class KeyTable {
 public:
  // The place of the member called `key`, or members.size(), where the caller then puts it.
  std::size_t find_or_add(const Json::Object& members, std::string_view key) {
    if (members.size() < kScanned) {
      std::size_t place = 0;
      while (place < members.size() && members[place].first != key) ++place;
      return place;
    }
    if (2 * members.size() >= slots_.size()) rebuild(members);
    const std::uint32_t hash = hash_of(key);
    Slot& slot = slot_of(members, key, hash);
    if (slot.place == kFree) slot = {hash, static_cast<std::uint32_t>(members.size())};
    return slot.place;
  }

 private:
  static constexpr std::size_t kScanned = 8;  // So few are compared one by one.
  static constexpr std::uint32_t kFree = 0xFFFFFFFFu;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t place = kFree;
  };

  // Keyed anew in every process: whoever writes the text must not be able to choose keys that
  // collide.
  static std::uint32_t hash_of(std::string_view key) {
    static const std::array<std::uint64_t, 2> secret = random_secret();
    std::uint64_t hash = fold(key.size() ^ secret[0], secret[1]);
    while (!key.empty()) {
      std::uint64_t word = 0;
      const std::size_t size = std::min(key.size(), sizeof word);
      std::memcpy(&word, key.data(), size);
      hash = fold(hash ^ word, secret[1]);
      key.remove_prefix(size);
    }
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
  }

  static std::array<std::uint64_t, 2> random_secret() {
    std::random_device random;
    const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
    return {word(), word() | 1};
  }

  // Both halves of the product.
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  Slot& slot_of(const Json::Object& members, std::string_view key, std::uint32_t hash) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].place != kFree &&
           (slots_[at].hash != hash || members[slots_[at].place].first != key)) {
      at = (at + 1) & mask;
    }
    return slots_[at];
  }

  void rebuild(const Json::Object& members) {
    slots_.assign(std::bit_ceil(8 * members.size()), {});
    for (std::size_t place = 0; place < members.size(); ++place) {
      const std::uint32_t hash = hash_of(members[place].first);
      slot_of(members, members[place].first, hash) = {hash, static_cast<std::uint32_t>(place)};
    }
  }

  std::vector<Slot> slots_;  // A power of two, at most half full; linear probing.
};

// Iterative, so that no input can exhaust the stack: open_ holds the containers being read.
class Parser {
 public:
  Parser(std::string_view text, const std::string& where, const JsonLimits& limits)
      : text_(text), where_(where), limits_(limits) {}

  Json parse() {
    do {
      read_value();
      while (!open_.empty() && !expect_value()) close();
    } while (!open_.empty());
    skip_space();
    if (at_ != text_.size()) fail("the end of the text");
    return std::move(root_);
  }

 private:
  struct Level {
    Json value;
    DuplicateKeys duplicates;
    std::string key;  // Of the member whose value comes next.
    KeyTable keys;    // Of an object's members.
  };

  [[noreturn]] void fail(std::string_view expected) const {
    std::string found = "the end of the text";
    if (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      found = byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", text_[at_])
                                         : fmt::format("the byte 0x{:02x}", byte);
    }
    throw_error(limits_.error, where_, "not valid JSON at byte {}: found {}, expected {}", at_,
                found, expected);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  // Reads a scalar, or opens a container.
  void read_value() {
    count_value();
    skip_space();
    switch (peek()) {
      case '{':
        open(Json::object());
        return;
      case '[':
        open(Json::array());
        return;
      case '"':
        add(Json(read_string()));
        return;
      case 't':
        read_word("true");
        add(Json(true));
        return;
      case 'f':
        read_word("false");
        add(Json(false));
        return;
      case 'n':
        read_word("null");
        add(Json());
        return;
      default:
        add(Json(read_number()));
    }
  }

  // Moves to where the innermost container's next value starts; false when it ends instead.
  bool expect_value() {
    Level& level = open_.back();
    const bool is_object = level.value.is_object();
    const char end = is_object ? '}' : ']';
    const bool is_first = is_object ? level.value.members().empty() : level.value.items().empty();
    skip_space();
    if (peek() == end) return false;
    if (!is_first) {
      if (peek() != ',') fail(is_object ? "',' or '}'" : "',' or ']'");
      ++at_;
      skip_space();
    }
    if (is_object) {
      if (peek() != '"') fail("a member name in double quotes");
      level.key = read_string();
      skip_space();
      if (peek() != ':') fail("':'");
      ++at_;
    }
    return true;
  }

  void open(Json container) {
    if (open_.size() >= limits_.depth) {
      throw_error(limits_.error, where_, "JSON nested more than {} deep", limits_.depth);
    }
    ++at_;
    const DuplicateKeys duplicates = duplicates_here();
    open_.push_back({std::move(container), duplicates, {}, {}});
  }

  // What to do with repeated keys in the container that opens now.
  DuplicateKeys duplicates_here() {
    const DuplicateKeys outside = open_.empty() ? limits_.duplicates : open_.back().duplicates;
    if (outside == DuplicateKeys::kLastWins || limits_.last_wins_at == nullptr) return outside;
    path_.clear();
    for (const Level& level : open_) {
      path_.push_back(level.value.is_array() ? "[]" : std::string_view(level.key));
    }
    return limits_.last_wins_at(path_) ? DuplicateKeys::kLastWins : outside;
  }

  void close() {
    ++at_;
    Json finished = std::move(open_.back().value);
    open_.pop_back();
    add(std::move(finished));
  }

  void count_value() {
    if (++values_ > limits_.values) {
      throw_error(limits_.error, where_, "JSON of more than {} values", limits_.values);
    }
  }

  void add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = open_.back();
    if (level.value.is_array()) {
      level.value.items().push_back(std::move(value));
      return;
    }
    Json::Object& members = level.value.members();
    const std::size_t place = level.keys.find_or_add(members, level.key);
    if (place == members.size()) {
      members.emplace_back(std::move(level.key), std::move(value));
    } else if (level.duplicates == DuplicateKeys::kLastWins) {
      members[place].second = std::move(value);
    } else {
      throw_error(limits_.error, where_, "the key \"{}\" stands twice in one object", level.key);
    }
  }

  void read_word(std::string_view word) {
    for (const char expected : word) {
      if (peek() != expected) fail(fmt::format("\"{}\"", word));
      ++at_;
    }
  }

  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }

  void read_digits() {
    if (!is_digit()) fail("a digit");
    while (is_digit()) ++at_;
  }

  Json::Number read_number() {
    const std::size_t begin = at_;
    if (peek() == '-') ++at_;
    if (!is_digit()) fail("a value");
    if (peek() == '0') {
      ++at_;
    } else {
      read_digits();
    }
    if (peek() == '.') {
      ++at_;
      read_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      read_digits();
    }
    return {std::string(text_.substr(begin, at_ - begin))};
  }

  std::string read_string() {
    std::string out;
    ++at_;
    while (true) {
      // Whole runs of plain ASCII at a time: strings of megabytes are common.
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
      out.append(text_, begin, at_ - begin);
      if (at_ >= text_.size()) fail("a closing '\"'");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        ++at_;
        read_escape(out);
      } else if (static_cast<unsigned char>(c) < 0x20) {
        fail("an escape in place of a control character");
      } else {
        const std::size_t length = utf8_sequence_length(text_.substr(at_));
        if (length == 0) fail("valid UTF-8");
        out.append(text_, at_, length);
        at_ += length;
      }
    }
  }

  static bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
  }

  void read_escape(std::string& out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (peek() == 'u') {
      ++at_;
      append_utf8(out, read_code_point());
      return;
    }
    const std::size_t which = at_ < text_.size() ? kLetters.find(text_[at_]) : kLetters.npos;
    if (which == kLetters.npos) fail("an escape letter");
    out += kMeanings[which];
    ++at_;
  }

  std::uint32_t read_hex4() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      const char c = peek() >= 'A' && peek() <= 'F' ? static_cast<char>(peek() + 32) : peek();
      const std::size_t digit = kDigits.find(c);
      if (at_ >= text_.size() || digit == kDigits.npos) fail("a hexadecimal digit");
      value = value << 4 | static_cast<std::uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  // After `\u`; joins a surrogate pair.
  std::uint32_t read_code_point() {
    const std::uint32_t first = read_hex4();
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first > 0xDBFF || text_.substr(at_, 2) != "\\u") fail("a surrogate pair");
    at_ += 2;
    const std::uint32_t second = read_hex4();
    if (second < 0xDC00 || second > 0xDFFF) fail("the second half of a surrogate pair");
    return 0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00));
  }

  std::string_view text_;
  const std::string& where_;
  const JsonLimits& limits_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  std::vector<Level> open_;
  std::vector<std::string_view> path_;
  Json root_;
};

void append_value(std::string& out, const Json& value, int indent) {
  const auto new_line = [&](int width) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(width), ' ');
  };
  const int inner = indent < 0 ? -1 : indent + 2;
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.boolean() ? "true" : "false";
  } else if (value.is_number()) {
    out += value.number().text;
  } else if (value.is_string()) {
    append_json_string(out, value.string());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : value.items()) {
      if (!std::exchange(first, false)) out += ',';
      new_line(inner);
      append_value(out, item, inner);
    }
    if (!first) new_line(indent);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.members()) {
      if (!std::exchange(first, false)) out += ',';
      new_line(inner);
      append_json_string(out, key);
      out += indent < 0 ? ":" : ": ";
      append_value(out, member, inner);
    }
    if (!first) new_line(indent);
    out += '}';
  }
}

}  // namespace

Json::Json(std::int64_t value) : value_(Number{digits_of(value)}) {}
Json::Json(std::uint64_t value) : value_(Number{digits_of(value)}) {}
Json::Json(double value) {
  if (std::isfinite(value)) value_ = Number{python_repr(value)};
}

std::string_view Json::kind_name() const {
  static constexpr std::array<std::string_view, 6> kNames{"null",     "a boolean", "a number",
                                                          "a string", "an array",  "an object"};
  return kNames[value_.index()];
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : members()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json& Json::set(std::string key, Json value) {
  members().emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push_back(Json value) {
  items().push_back(std::move(value));
  return *this;
}

std::optional<std::int64_t> Json::as_int64() const { return integer_of<std::int64_t>(*this); }
std::optional<std::uint64_t> Json::as_uint64() const { return integer_of<std::uint64_t>(*this); }

std::optional<double> Json::as_double() const {
  if (!is_number()) return std::nullopt;
  // strtod rounds correctly and gives ±infinity on overflow; from_chars would leave the value out.
  return std::strtod(number().text.c_str(), nullptr);
}

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw_error(limits.error, where, "{} bytes of JSON, expected at most {}", text.size(),
                limits.bytes);
  }
  return Parser(text, where, limits).parse();
}

std::string to_string(const Json& value) {
  std::string out;
  append_value(out, value, -1);
  return out;
}

std::string to_pretty_string(const Json& value) {
  std::string out;
  append_value(out, value, 0);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::fabs(value);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  std::array<char, 64> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), written.ptr);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace clefkit
