#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/image_formats.h"

namespace clefkit::decoder {
namespace {

constexpr png_uint_32 kMaxSide = 1'000'000;
constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{8} << 20;
constexpr std::size_t kSignatureBytes = 8;

struct Session {
  Bytes rest;
  std::array<char, 128> message{};
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& session = *static_cast<Session*>(png_get_error_ptr(png));
  std::snprintf(session.message.data(), session.message.size(), "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, std::size_t size) {
  auto& session = *static_cast<Session*>(png_get_io_ptr(png));
  if (size > session.rest.size()) png_error(png, "the file ends early");
  std::memcpy(to, session.rest.data(), size);
  session.rest = session.rest.subspan(size);
}

std::uint32_t big_endian(Bytes bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24U | std::uint32_t{bytes[at + 1]} << 16U |
         std::uint32_t{bytes[at + 2]} << 8U | bytes[at + 3];
}

// libpng hands out eXIf only in some builds, and only if it comes before the pixels.
Orientation orientation_of(Bytes bytes) {
  std::size_t at = kSignatureBytes;
  while (bytes.size() - at >= 12) {
    const std::size_t size = big_endian(bytes, at);
    if (size > bytes.size() - at - 12) break;
    if (as_text(bytes.subspan(at + 4, 4)) == "eXIf")
      return exif_orientation(bytes.subspan(at + 8, size));
    at += size + 12;
  }
  return Orientation::kUpright;
}

class PngReader {
 public:
  explicit PngReader(Bytes bytes) : session_{bytes, {}} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session_, on_error, on_warning);
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw_error(ErrorCode::kInternal, "", "libpng does not start, expected version {}",
                  PNG_LIBPNG_VER_STRING);
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Each step holds the one setjmp of its calls and no object with a destructor.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, &session_, on_read);
    png_set_user_limits(png_, kMaxSide, kMaxSide);
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    // Notes, profiles and the like change no pixel here, so they are not even unpacked.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    return true;
  }

  // Eight-bit RGB whatever the file has; alpha is dropped, not blended, as the reference does.
  bool set_transforms() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_scale_16(png_);
    const int type = png_get_color_type(png_, info_);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if ((type & PNG_COLOR_MASK_COLOR) == 0) {
      png_set_expand_gray_1_2_4_to_8(png_);
      png_set_gray_to_rgb(png_);
    }
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_pixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  png_uint_32 height() const { return png_get_image_height(png_, info_); }
  png_uint_32 width() const { return png_get_image_width(png_, info_); }
  std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  const char* message() const { return session_.message.data(); }

 private:
  Session session_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

DecodedImage decode_png(Bytes bytes, std::uint64_t max_pixels) {
  PngReader reader(bytes);
  if (!reader.read_header()) throw_damaged("PNG", reader.message());
  DecodedImage decoded{make_image(reader.height(), reader.width(), max_pixels, "PNG"),
                       orientation_of(bytes)};
  if (!reader.set_transforms()) throw_damaged("PNG", reader.message());
  Image& image = decoded.image;
  if (reader.row_bytes() != image.width * 3)
    throw_error(ErrorCode::kInternal, "", "a PNG row of {} bytes, expected {}", reader.row_bytes(),
                image.width * 3);
  std::vector<png_bytep> rows(image.height);
  for (std::size_t y = 0; y < image.height; ++y) rows[y] = image.rgb.data() + y * image.width * 3;
  if (!reader.read_pixels(rows.data())) throw_damaged("PNG", reader.message());
  return decoded;
}

}  // namespace clefkit::decoder
