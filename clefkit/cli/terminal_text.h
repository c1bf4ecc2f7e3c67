#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text as a terminal shows it, in columns.
namespace clefkit::cli {

inline constexpr std::size_t kWidestName = 28;

// Ids come from requests, so control characters must not reach the terminal.
std::string printable(std::string_view text);

// In characters.
std::size_t width_of(std::string_view text);

// Printable, cut to kWidestName characters and padded to `width`.
std::string fitted(std::string_view text, std::size_t width);

// A bar of that part, 0 to 1, of 24 characters.
std::string bar(double share);

}  // namespace clefkit::cli
