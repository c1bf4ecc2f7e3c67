#include "clefkit/media/media_decoder.h"

#include <algorithm>

#include "clefkit/base/companion_program.h"
#include "clefkit/base/error.h"
#include "clefkit/media/decoder_process.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

void check_size(std::size_t bytes, const MediaLimits& limits, const std::string& where) {
  if (bytes > limits.bytes) {
    throw_error(ErrorCode::kInvalidArgument, where, "{} bytes, expected at most {}", bytes,
                limits.bytes);
  }
  if (bytes == 0) throw_error(ErrorCode::kInvalidArgument, where, "no bytes, expected a file");
}

template <typename T>
Bytes bytes_of(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}

// What both kinds of job say of their limits; the process keeps them too.
decoder::JobHeader job_of(decoder::JobKind kind, std::size_t bytes, const MediaLimits& limits) {
  decoder::JobHeader job;
  job.kind = kind;
  job.bytes = bytes;
  job.pixels = limits.pixels;
  job.frame_pixels = limits.frame_pixels;
  job.frames = limits.frames;
  job.clip_seconds = limits.clip_seconds;
  job.cpu_seconds = static_cast<std::uint64_t>(limits.decode_time.count());
  job.memory_bytes = limits.decode_memory;
  return job;
}

}  // namespace

fs::path find_media_decoder(const fs::path& given) {
  return find_companion_program("clefkit-media-decoder", "CLEFKIT_MEDIA_DECODER", given);
}

MediaDecoder::MediaDecoder(MediaLimits limits, fs::path program)
    : limits_(limits), program_(std::move(program)) {}

Image MediaDecoder::decode_image(std::span<const std::uint8_t> bytes, ExifOrientation orientation,
                                 const std::string& where, const CancelToken* cancel) const {
  check_size(bytes.size(), limits_, where);
  DecoderProcess process(find_media_decoder(program_), where, limits_.decode_time, cancel);
  decoder::JobHeader job = job_of(decoder::JobKind::kImage, bytes.size(), limits_);
  job.apply_exif = orientation == ExifOrientation::kApply ? 1 : 0;
  process.send(bytes_of(job));
  process.send(bytes);
  return process.receive_picture(limits_.pixels);
}

void MediaDecoder::decode_video(
    std::span<const std::uint8_t> bytes, const std::string& where,
    const std::function<std::vector<std::size_t>(std::span<const double>)>& choose,
    const std::function<void(const Image& frame, double seconds)>& take,
    const CancelToken* cancel) const {
  check_size(bytes.size(), limits_, where);
  DecoderProcess process(find_media_decoder(program_), where, limits_.decode_time, cancel);
  process.send(bytes_of(job_of(decoder::JobKind::kVideo, bytes.size(), limits_)));
  process.send(bytes);
  const std::vector<double> seconds = process.receive_times(limits_.frames, limits_.clip_seconds);
  process.pause();
  const std::vector<std::size_t> wanted = choose(seconds);
  process.resume();

  // A frame that is wanted twice is decoded once.
  std::vector<std::uint64_t> indices(wanted.begin(), wanted.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  process.send(bytes_of(std::uint64_t{indices.size()}));
  process.send({reinterpret_cast<const std::uint8_t*>(indices.data()),
                indices.size() * sizeof(std::uint64_t)});
  auto next = wanted.begin();
  for (const std::uint64_t index : indices) {
    const Image frame = process.receive_picture(limits_.frame_pixels);
    process.pause();
    for (; next != wanted.end() && *next == index; ++next) take(frame, seconds[index]);
    process.resume();
  }
}

}  // namespace clefkit
