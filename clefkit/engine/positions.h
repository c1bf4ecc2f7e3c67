#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace clefkit {

// The tokens [begin, end) of a record.
struct TokenSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

// The pad tokens of an image or of one frame pair of a video, row by row.
struct MediaRun {
  TokenSpan span;  // rows · columns tokens.
  std::size_t rows = 0;
  std::size_t columns = 0;
};

// mRoPE positions, one of each kind per token.
struct Positions {
  std::vector<std::int32_t> temporal, height, width;
};

// Positions of a sequence with these runs, which are in order and do not overlap (model.md 3).
// Text counts up in all three kinds; a run stands still in time, spreads over height and width,
// and takes max(rows, columns) off the count.
Positions mrope_positions(std::size_t tokens, std::span<const MediaRun> runs);

}  // namespace clefkit
