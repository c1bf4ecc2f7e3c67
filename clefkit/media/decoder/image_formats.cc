#include "clefkit/media/decoder/image_formats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit::decoder {
namespace {

using Decode = DecodedImage (*)(Bytes, std::uint64_t);

Decode decoder_of(Bytes bytes) {
  const std::string_view text = as_text(bytes);
  if (text.starts_with("\xFF\xD8\xFF")) return decode_jpeg;
  if (text.starts_with("\x89PNG\r\n\x1A\n")) return decode_png;
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) return decode_webp;
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return decode_gif;
  return nullptr;
}

}  // namespace

std::string first_bytes(Bytes bytes, std::size_t size) {
  return fmt::format("{:02x}", fmt::join(bytes.first(std::min(size, bytes.size())), " "));
}

void throw_damaged(std::string_view format, std::string_view reason) {
  throw_error(ErrorCode::kInvalidArgument, "", "a damaged {} ({}), expected a whole one", format,
              reason);
}

Image make_image(std::uint64_t height, std::uint64_t width, std::uint64_t max_pixels,
                 const char* format) {
  if (height == 0 || width == 0)
    throw_error(ErrorCode::kInvalidArgument, "", "a {} of {}x{} pixels, expected at least one",
                format, width, height);
  if (height > max_pixels / width)
    throw_error(ErrorCode::kInvalidArgument, "", "a {} of {}x{} pixels, expected at most {} pixels",
                format, width, height, max_pixels);
  Image image{.height = height, .width = width, .rgb = {}};
  image.rgb.resize(height * width * 3);
  return image;
}

Image decode_image_file(Bytes bytes, std::uint64_t max_pixels, bool apply_exif) {
  const Decode decode = decoder_of(bytes);
  if (!decode)
    throw_error(ErrorCode::kInvalidArgument, "",
                "a file beginning with {}, expected a JPEG, PNG, WebP or GIF picture",
                first_bytes(bytes, 12));
  DecodedImage decoded = decode(bytes, max_pixels);
  return turned(std::move(decoded.image), apply_exif ? decoded.orientation : Orientation::kUpright);
}

}  // namespace clefkit::decoder
