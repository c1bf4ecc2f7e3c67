#include "clefkit/engine/positions.h"

#include <algorithm>
#include <cassert>

namespace clefkit {

Positions mrope_positions(std::size_t tokens, std::span<const MediaRun> runs) {
  Positions positions;
  for (auto* kind : {&positions.temporal, &positions.height, &positions.width}) {
    kind->reserve(tokens);
  }
  const auto add = [&](std::size_t temporal, std::size_t height, std::size_t width) {
    positions.temporal.push_back(static_cast<std::int32_t>(temporal));
    positions.height.push_back(static_cast<std::int32_t>(height));
    positions.width.push_back(static_cast<std::int32_t>(width));
  };
  std::size_t next = 0;
  const auto add_text_until = [&](std::size_t end) {
    for (; positions.temporal.size() < end; ++next) add(next, next, next);
  };
  for (const MediaRun& run : runs) {
    assert(run.span.size() == run.rows * run.columns);
    add_text_until(run.span.begin);
    for (std::size_t row = 0; row < run.rows; ++row) {
      for (std::size_t column = 0; column < run.columns; ++column) {
        add(next, next + row, next + column);
      }
    }
    next += std::max(run.rows, run.columns);
  }
  add_text_until(tokens);
  return positions;
}

}  // namespace clefkit
