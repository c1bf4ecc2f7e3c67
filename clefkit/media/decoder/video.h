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

// Both decode the whole clip and throw Error(kInvalidArgument, kUnsupported) without a place.

// When each frame is shown: seconds from the first on, ascending.
std::vector<double> video_times(Bytes bytes, const VideoLimits& limits);

// Gives the frames of those indices into video_times(), which ascend strictly, one by one.
void video_frames(Bytes bytes, const VideoLimits& limits, std::span<const std::uint64_t> indices,
                  const std::function<void(const Image&)>& take);

}  // namespace clefkit::decoder
