#include "clefkit/media/decoder/video.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/clip_reader.h"
#include "clefkit/media/decoder/frame_to_rgb.h"

namespace clefkit::decoder {

VideoTimes video_times(Bytes bytes, const VideoLimits& limits) {
  ClipReader reader(bytes, limits);
  std::vector<double> decoded;
  while (reader.next()) decoded.push_back(reader.seconds());
  if (decoded.empty())
    throw_error(ErrorCode::kInvalidArgument, "", "a clip without frames, expected at least one");

  std::vector<std::size_t> order(decoded.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return decoded[i]; });
  VideoTimes times{.seconds = {}, .shown_as = std::vector<std::size_t>(decoded.size())};
  for (const std::size_t i : order) {
    times.shown_as[i] = times.seconds.size();
    times.seconds.push_back(decoded[i] - decoded[order.front()]);
  }
  return times;
}

void video_frames(Bytes bytes, const VideoLimits& limits, const VideoTimes& times,
                  std::span<const std::uint64_t> indices,
                  const std::function<void(const Image&)>& take) {
  std::map<std::uint64_t, Image> early;  // Wanted, but an earlier one is not decoded yet.
  auto wanted = indices.begin();
  ClipReader reader(bytes, limits);
  for (std::size_t decoded = 0; wanted != indices.end() && decoded < times.shown_as.size();
       ++decoded) {
    const auto* frame = reader.next();
    if (!frame) break;
    const std::uint64_t index = times.shown_as[decoded];
    if (!std::binary_search(indices.begin(), indices.end(), index)) continue;
    early.emplace(index, turned(frame_to_rgb(*frame), reader.orientation()));
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
