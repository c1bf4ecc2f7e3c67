#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit {

// Segments [first_segment, first_segment + segment_count) that share one vision call.
struct VisionGroup {
  std::size_t first_segment = 0;
  std::size_t segment_count = 0;
  std::size_t first_patch = 0;  // Before it, over all segments.
  std::size_t patches = 0;
};

// Packs segments, in their order, into groups of at most `capacity` patches. A segment larger than
// that is a group of its own: whether it can be run is the backend's to say.
std::vector<VisionGroup> pack_vision_segments(std::span<const VisionSegment> segments,
                                              std::size_t capacity);

// What a call of fixed size adds to its attention scores so that segments do not see each other:
// mask [capacity, capacity] gets 0 where both patches belong to one segment and `masked`
// elsewhere. Padding after the last segment attends to itself, so no row of a softmax is empty.
void fill_segment_mask(std::span<const VisionSegment> segments, float masked,
                       MatrixView<float> mask);

}  // namespace clefkit
