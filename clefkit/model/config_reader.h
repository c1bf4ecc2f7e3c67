#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"

namespace clefkit {

// Reads checked values out of one object of a configuration file and names key and file in every
// error. A key whose value is null counts as absent, as Python's writers mean it.
class ConfigReader {
 public:
  // Throws Error(kCorruptData) unless `text` is a JSON object.
  static ConfigReader parse(std::string_view text, const std::string& file);

  bool has(std::string_view key) const;
  // An array or object without content.
  bool is_empty(std::string_view key) const;
  // The object under `key`, which must be there.
  ConfigReader section(std::string_view key) const;

  // An integer in [1, maximum].
  std::size_t size(std::string_view key, std::size_t maximum) const;
  // An integer in [0, end).
  std::size_t index(std::string_view key, std::size_t end) const;
  // An array of integers in [0, maximum].
  std::vector<std::size_t> sizes(std::string_view key, std::size_t maximum) const;
  // Finite and above 0.
  double positive_number(std::string_view key) const;
  double number_or(std::string_view key, double fallback) const;
  bool bool_or(std::string_view key, bool fallback) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> strings(std::string_view key) const;

  // kUnsupported when the key is there with another value.
  void require_string(std::string_view key, std::string_view expected) const;
  void require_bool(std::string_view key, bool expected) const;
  // kCorruptData unless value is a multiple of divisor.
  void require_multiple(std::string_view key, std::size_t value, std::string_view divisor_key,
                        std::size_t divisor) const;

  template <typename... Args>
  [[noreturn]] void corrupt(std::string_view key, fmt::format_string<Args...> format,
                            Args&&... args) const {
    throw_error(ErrorCode::kCorruptData, where(key), format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  [[noreturn]] void unsupported(std::string_view key, fmt::format_string<Args...> format,
                                Args&&... args) const {
    throw_error(ErrorCode::kUnsupported, where(key), format, std::forward<Args>(args)...);
  }

 private:
  ConfigReader(std::string file, std::string path, Json object)
      : file_(std::move(file)), path_(std::move(path)), object_(std::move(object)) {}

  std::string where(std::string_view key) const {
    return fmt::format("{}: {}{}", file_, path_, key);
  }
  const Json& require(std::string_view key) const;

  std::string file_;
  std::string path_;  // "text_config." before the keys of that section.
  Json object_;
};

}  // namespace clefkit
