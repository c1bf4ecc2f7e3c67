#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "clefkit/base/bytes.h"
#include "clefkit/media/decoder/orientation.h"
#include "clefkit/media/image.h"

namespace clefkit::decoder {

struct DecodedImage {
  Image image;
  Orientation orientation = Orientation::kUpright;
};

// One picture format each. They read the size from the header and refuse more than `max_pixels`
// before they take memory for it. Throw Error(kInvalidArgument, kUnsupported) without a place: the
// parent knows which picture it is.
DecodedImage decode_jpeg(Bytes bytes, std::uint64_t max_pixels);
DecodedImage decode_png(Bytes bytes, std::uint64_t max_pixels);
DecodedImage decode_webp(Bytes bytes, std::uint64_t max_pixels);
DecodedImage decode_gif(Bytes bytes, std::uint64_t max_pixels);

// Whichever of them the first bytes name.
Image decode_image_file(Bytes bytes, std::uint64_t max_pixels, bool apply_exif);

// For the formats: [height, width, 3] bytes, or the error that there are too many.
Image make_image(std::uint64_t height, std::uint64_t width, std::uint64_t max_pixels,
                 const char* format);

// For a file of that format which is not whole.
[[noreturn]] void throw_damaged(std::string_view format, std::string_view reason);

// The first `size` bytes as hexadecimal digits, for messages about files that are something else.
std::string first_bytes(Bytes bytes, std::size_t size);

}  // namespace clefkit::decoder
