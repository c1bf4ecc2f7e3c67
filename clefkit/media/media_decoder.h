#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/media/image.h"

namespace clefkit {

// What a picture or clip may cost. Checked against headers before anything is decoded, and enforced
// on the decoding process from outside.
struct MediaLimits {
  std::size_t bytes = std::size_t{64} << 20;         // Of the encoded file.
  std::size_t pixels = std::size_t{128} << 20;       // Of a picture: height × width.
  std::size_t frame_pixels = std::size_t{36} << 20;  // Of a clip's frame.
  std::size_t frames = 36'000;                       // Decoded of a clip.
  double clip_seconds = 600;
  std::chrono::seconds decode_time{60};              // Of the decoding process.
  std::size_t decode_memory = std::size_t{2} << 30;  // Bytes of its address space.
};

// Whether a picture is turned as its EXIF orientation says; the reference does not.
enum class ExifOrientation { kApply, kIgnore };

// The program that decodes: `given`, or as MediaDecoder finds it. Throws Error(kUnavailable).
std::filesystem::path find_media_decoder(const std::filesystem::path& given = {});

// Decodes media from strangers in a process of its own that has no files, no network, little memory
// and little time, so that a decoder's defect costs one request at most. One call at a time.
class MediaDecoder {
 public:
  // `program` is the decoder executable; empty: $CLEFKIT_MEDIA_DECODER, else beside this program,
  // else where clefkit was installed. Looked for when first needed.
  explicit MediaDecoder(MediaLimits limits = {}, std::filesystem::path program = {});

  // JPEG, PNG, WebP or the first frame of a GIF, told by their content. Errors name `where`:
  // kInvalidArgument for what is wrong with the bytes or beyond a limit, kUnsupported for a codec
  // that this build lacks, kUnavailable when there is no decoder program, kCancelled.
  Image decode_image(std::span<const std::uint8_t> bytes, ExifOrientation orientation,
                     const std::string& where, const CancelToken* cancel = nullptr) const;

  // A clip, decoded twice: `choose` is given the presentation times of all frames, in seconds from
  // the first on and ascending, and returns the indices of those wanted, ascending (repeats
  // allowed); then `take` is called once an index, in order. Frames are turned as the clip's
  // rotation says. Errors as above.
  void decode_video(std::span<const std::uint8_t> bytes, const std::string& where,
                    const std::function<std::vector<std::size_t>(std::span<const double>)>& choose,
                    const std::function<void(const Image& frame, double seconds)>& take,
                    const CancelToken* cancel = nullptr) const;

 private:
  MediaLimits limits_;
  std::filesystem::path program_;
};

}  // namespace clefkit
