#include "clefkit/backend/vision_packing.h"

#include <algorithm>
#include <cassert>

namespace clefkit {

std::vector<VisionGroup> pack_vision_segments(std::span<const VisionSegment> segments,
                                              std::size_t capacity) {
  std::vector<VisionGroup> groups;
  std::size_t patch = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::size_t patches = segments[i].patches();
    if (groups.empty() || groups.back().patches + patches > capacity) {
      groups.push_back({.first_segment = i, .first_patch = patch});
    }
    ++groups.back().segment_count;
    groups.back().patches += patches;
    patch += patches;
  }
  return groups;
}

void fill_segment_mask(std::span<const VisionSegment> segments, float masked,
                       MatrixView<float> mask) {
  assert(mask.rows == mask.columns);
  const auto fill_block = [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      std::ranges::fill(mask.row(row), masked);
      std::ranges::fill(mask.row(row).subspan(begin, end - begin), 0.0f);
    }
  };
  std::size_t begin = 0;
  for (const VisionSegment& segment : segments) {
    assert(begin + segment.patches() <= mask.rows);
    fill_block(begin, begin + segment.patches());
    begin += segment.patches();
  }
  fill_block(begin, mask.rows);
}

}  // namespace clefkit
