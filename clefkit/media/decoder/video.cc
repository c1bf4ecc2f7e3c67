#include "clefkit/media/decoder/video.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/clip_reader.h"
#include "clefkit/media/decoder/frame_to_rgb.h"

namespace clefkit::decoder {
namespace {

std::vector<double> decoded_times(Bytes bytes, const VideoLimits& limits) {
  ClipReader reader(bytes, limits);
  std::vector<double> seconds;
  while (reader.next()) seconds.push_back(reader.seconds());
  if (seconds.empty())
    throw_error(ErrorCode::kInvalidArgument, "", "a clip without frames, expected at least one");
  return seconds;
}

}  // namespace

std::vector<double> video_times(Bytes bytes, const VideoLimits& limits) {
  std::vector<double> seconds = decoded_times(bytes, limits);
  std::ranges::sort(seconds);
  const double first = seconds.front();
  for (double& time : seconds) time -= first;
  return seconds;
}

void video_frames(Bytes bytes, const VideoLimits& limits, std::span<const std::uint64_t> indices,
                  const std::function<void(const Image&)>& take) {
  if (indices.empty()) return;
  // Files may hold frames in another order than they are shown in: position[d] is the place in time
  // of the d-th that is decoded.
  const std::vector<double> seconds = decoded_times(bytes, limits);
  std::vector<std::size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return seconds[i]; });
  std::vector<std::size_t> position(seconds.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;

  std::map<std::uint64_t, Image> early;  // Wanted, but an earlier one is not decoded yet.
  auto wanted = indices.begin();
  ClipReader reader(bytes, limits);
  for (std::size_t decoded = 0; wanted != indices.end() && decoded < position.size(); ++decoded) {
    const auto* frame = reader.next();
    if (!frame) break;
    if (!std::binary_search(indices.begin(), indices.end(), position[decoded])) continue;
    early.emplace(position[decoded], turned(frame_to_rgb(*frame), reader.orientation()));
    while (!early.empty() && wanted != indices.end() && early.begin()->first == *wanted) {
      take(early.begin()->second);
      early.erase(early.begin());
      ++wanted;
    }
  }
  if (wanted != indices.end())
    throw_error(ErrorCode::kInternal, "", "no frame {}, expected as many as were counted", *wanted);
}

}  // namespace clefkit::decoder
