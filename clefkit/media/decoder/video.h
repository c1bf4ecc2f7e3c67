#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/media/image.h"

namespace clefkit::decoder {

struct VideoLimits {
  std::uint64_t frame_pixels = 0;
  std::uint64_t frames = 0;
  double seconds = 0;
};

struct VideoTimes {
  // When each frame is shown: seconds from the first on, ascending.
  std::vector<double> seconds;
  // Files may hold frames in another order than they are shown in: the index into `seconds` of
  // each, as they are decoded.
  std::vector<std::size_t> shown_as;
};

// Both decode the clip and throw Error(kInvalidArgument, kUnsupported) without a place.

VideoTimes video_times(Bytes bytes, const VideoLimits& limits);

// Gives the frames of those indices into `times.seconds`, which ascend strictly, one by one. Stops
// decoding after the last.
void video_frames(Bytes bytes, const VideoLimits& limits, const VideoTimes& times,
                  std::span<const std::uint64_t> indices,
                  const std::function<void(const Image&)>& take);

}  // namespace clefkit::decoder
