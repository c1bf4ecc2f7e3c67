#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clefkit/base/error.h"

// Files of one thing a line: requests, states, recorded answers.
namespace clefkit {

struct Line {
  std::size_t number = 0;   // From 1, blank lines counted.
  std::string_view text{};  // Without its end (\n or \r\n). A view of what was split.
};

// The lines that hold more than spaces and tabs.
std::vector<Line> filled_lines(std::string_view text);

// What `function` returns, or its Error with `place` before its own place, unless that begins so.
template <typename Function>
auto at_place(const std::string& place, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    if (place.empty() || error.where().starts_with(place)) throw;
    throw Error(error.code(), error.where().empty() ? place : place + ": " + error.where(),
                error.message());
  }
}

}  // namespace clefkit
