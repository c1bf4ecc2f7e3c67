#include "clefkit/media/base64.h"

#include <array>

namespace clefkit {
namespace {

constexpr std::uint8_t kNone = 0xFF;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::uint8_t, 256> digit_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  values['-'] = 62;
  values['_'] = 63;
  return values;
}

constexpr std::array<std::uint8_t, 256> kValues = digit_values();

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::optional<std::vector<std::uint8_t>> decode_base64(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  std::size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (is_space(c)) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone || padding > 0) return std::nullopt;
    bits = bits << 6 | value;
    if (++digits % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  // Two or three digits are left for one or two bytes; the bits beyond those must be zero.
  const std::size_t rest = digits % 4;
  if (rest == 1 || (padding > 0 && padding != (4 - rest) % 4)) return std::nullopt;
  if (rest == 2) {
    if ((bits & 0xF) != 0) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(bits >> 4));
  } else if (rest == 3) {
    if ((bits & 0x3) != 0) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(bits >> 10));
    bytes.push_back(static_cast<std::uint8_t>(bits >> 2));
  }
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < group.size() ? static_cast<unsigned char>(group[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= group.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

}  // namespace clefkit
