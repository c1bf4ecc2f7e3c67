#include "clefkit/base/error.h"
#include "clefkit/media/decoder/video.h"

namespace clefkit::decoder {
namespace {

[[noreturn]] void refuse() {
  throw_error(
      ErrorCode::kUnsupported, "",
      "a video, but this build has no video decoder (CLEFKIT_VIDEO), expected pictures only");
}

}  // namespace

VideoTimes video_times(Bytes, const VideoLimits&) { refuse(); }

void video_frames(Bytes, const VideoLimits&, const VideoTimes&, std::span<const std::uint64_t>,
                  const std::function<void(const Image&)>&) {
  refuse();
}

}  // namespace clefkit::decoder
