// clefkit-media-decoder: decodes one picture or clip for MediaDecoder (decoder_protocol.h) and
// ends.
#include <unistd.h>

#include <exception>
#include <new>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/image_formats.h"
#include "clefkit/media/decoder/pipe_io.h"
#include "clefkit/media/decoder/probes.h"
#include "clefkit/media/decoder/sandbox.h"
#include "clefkit/media/decoder/video.h"
#include "clefkit/media/decoder_protocol.h"

namespace clefkit::decoder {
namespace {

void decode_clip(Bytes bytes, const JobHeader& job) {
  const VideoLimits limits{
      .frame_pixels = job.frame_pixels, .frames = job.frames, .seconds = job.clip_seconds};
  const VideoTimes times = video_times(bytes, limits);
  send_times(times.seconds);
  std::vector<std::uint64_t> indices(read_value<std::uint64_t>());
  read_all({reinterpret_cast<std::uint8_t*>(indices.data()), indices.size() * sizeof indices[0]});
  video_frames(bytes, limits, times, indices, send_picture);
}

void run_job(const JobHeader& job) {
  std::vector<std::uint8_t> bytes(job.bytes);
  read_all(bytes);
  switch (job.kind) {
    case JobKind::kImage:
      return send_picture(decode_image_file(bytes, job.pixels, job.apply_exif != 0));
    case JobKind::kVideo:
      return decode_clip(bytes, job);
    case JobKind::kProbe:
      return run_probe(job.probe);
  }
}

int run() {
  JobHeader job;
  try {
    close_everything();
    job = read_value<JobHeader>();
    if (job.magic != kMagic)
      throw_error(ErrorCode::kUnavailable, "",
                  "a decoder of another build, expected clefkit's own");
    enter_sandbox(job.memory_bytes, job.cpu_seconds);
    run_job(job);
    return 0;
  } catch (const Error& error) {
    send_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    send_error(ErrorCode::kInvalidArgument,
               fmt::format("more memory than the limit allows, expected at most {} bytes",
                           job.memory_bytes));
  } catch (const std::exception& error) {
    send_error(ErrorCode::kInternal, error.what());
  }
  return 0;
}

}  // namespace
}  // namespace clefkit::decoder

// No destructors of libraries run after untrusted data did.
int main() { _exit(clefkit::decoder::run()); }
