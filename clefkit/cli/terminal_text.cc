#include "clefkit/cli/terminal_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "clefkit/base/utf8.h"

namespace clefkit::cli {
namespace {

constexpr std::size_t kBarWidth = 24;

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++width) {
    at += std::max<std::size_t>(1, utf8_sequence_length(text.substr(at)));
  }
  return width;
}

std::string fitted(std::string_view text, std::size_t width) {
  std::string name = printable(text);
  if (width_of(name) > kWidestName) {
    std::size_t end = 0;
    for (std::size_t i = 0; i + 1 < kWidestName; ++i) {
      end += std::max<std::size_t>(1, utf8_sequence_length(std::string_view(name).substr(end)));
    }
    name = name.substr(0, end) + "…";
  }
  name.append(width - std::min(width, width_of(name)), ' ');
  return name;
}

std::string bar(double share) {
  static constexpr std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(kBarWidth * 8)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  out.append(kBarWidth - std::min(kBarWidth, eighths / 8 + (eighths % 8 != 0 ? 1 : 0)), ' ');
  return out;
}

}  // namespace clefkit::cli
