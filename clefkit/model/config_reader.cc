#include "clefkit/model/config_reader.h"

#include <cmath>

namespace clefkit {
namespace {

// Tens of kilobytes are usual even where other tools add their own keys.
constexpr std::size_t kConfigLimit = std::size_t{4} << 20;

}  // namespace

ConfigReader ConfigReader::parse(std::string_view text, const std::string& file) {
  Json object = parse_json(text, file, {.bytes = kConfigLimit});
  if (!object.is_object()) {
    throw_error(ErrorCode::kCorruptData, file, "holds {}, expected an object", object.kind_name());
  }
  return ConfigReader(file, "", std::move(object));
}

bool ConfigReader::has(std::string_view key) const {
  const Json* const value = object_.find(key);
  return value != nullptr && !value->is_null();
}

const Json& ConfigReader::require(std::string_view key) const {
  const Json* const value = object_.find(key);
  if (value == nullptr || value->is_null()) corrupt(key, "the key is absent");
  return *value;
}

bool ConfigReader::is_empty(std::string_view key) const {
  const Json& value = require(key);
  return (value.is_array() && value.items().empty()) ||
         (value.is_object() && value.members().empty());
}

ConfigReader ConfigReader::section(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_object()) corrupt(key, "found {}, expected an object", value.kind_name());
  return ConfigReader(file_, fmt::format("{}{}.", path_, key), value);
}

std::size_t ConfigReader::size(std::string_view key, std::size_t maximum) const {
  const Json& value = require(key);
  const auto number = value.as_uint64();
  if (!number || *number < 1 || *number > maximum) {
    corrupt(key, "{}, expected an integer from 1 to {}", to_string(value), maximum);
  }
  return *number;
}

std::size_t ConfigReader::index(std::string_view key, std::size_t end) const {
  const Json& value = require(key);
  const auto number = value.as_uint64();
  if (!number || *number >= end) {
    corrupt(key, "{}, expected an integer from 0 to {}", to_string(value), end - 1);
  }
  return *number;
}

std::vector<std::size_t> ConfigReader::sizes(std::string_view key, std::size_t maximum) const {
  const Json& value = require(key);
  if (!value.is_array()) corrupt(key, "found {}, expected an array", value.kind_name());
  std::vector<std::size_t> numbers;
  for (const Json& item : value.items()) {
    const auto number = item.as_uint64();
    if (!number || *number > maximum) {
      corrupt(key, "{}, expected integers from 0 to {}", to_string(item), maximum);
    }
    numbers.push_back(*number);
  }
  return numbers;
}

double ConfigReader::positive_number(std::string_view key) const {
  const Json& value = require(key);
  const auto number = value.as_double();
  if (!number || !std::isfinite(*number) || !(*number > 0)) {
    corrupt(key, "{}, expected a number above 0", to_string(value));
  }
  return *number;
}

double ConfigReader::number_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  const auto number = require(key).as_double();
  if (!number || !std::isfinite(*number)) {
    corrupt(key, "{}, expected a number", to_string(require(key)));
  }
  return *number;
}

bool ConfigReader::bool_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& value = require(key);
  if (!value.is_bool()) corrupt(key, "found {}, expected a boolean", value.kind_name());
  return value.boolean();
}

std::string ConfigReader::string_or(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return std::string(fallback);
  const Json& value = require(key);
  if (!value.is_string()) corrupt(key, "found {}, expected a string", value.kind_name());
  return value.string();
}

std::vector<std::string> ConfigReader::strings(std::string_view key) const {
  const Json& value = require(key);
  if (!value.is_array()) corrupt(key, "found {}, expected an array", value.kind_name());
  std::vector<std::string> texts;
  for (const Json& item : value.items()) {
    if (!item.is_string()) corrupt(key, "holds {}, expected strings", item.kind_name());
    texts.push_back(item.string());
  }
  return texts;
}

void ConfigReader::require_string(std::string_view key, std::string_view expected) const {
  const std::string found = string_or(key, expected);
  if (found != expected) unsupported(key, "`{}`, expected `{}`", found, expected);
}

void ConfigReader::require_bool(std::string_view key, bool expected) const {
  if (bool_or(key, expected) != expected) {
    unsupported(key, "{}, expected {}", !expected, expected);
  }
}

void ConfigReader::require_multiple(std::string_view key, std::size_t value,
                                    std::string_view divisor_key, std::size_t divisor) const {
  if (value % divisor != 0) {
    corrupt(key, "{}, expected a multiple of {}, the {}", value, divisor, divisor_key);
  }
}

}  // namespace clefkit
