// jpeglib.h takes size_t and FILE from whoever includes it, and jerror.h its version from
// jpeglib.h.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/image_formats.h"

namespace clefkit::decoder {
namespace {

// An encoder writes about ten. Each costs a pass over the whole picture however small it is.
constexpr int kMaxScans = 100;

// What libjpeg's callbacks share. They leave by longjmp, because exceptions may not pass through C.
struct Session {
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

Session& session_of(j_common_ptr info) { return *static_cast<Session*>(info->client_data); }

[[noreturn]] void on_error(j_common_ptr info) {
  Session& session = session_of(info);
  (*info->err->format_message)(info, session.message.data());
  std::longjmp(session.escape, 1);
}

// Damage that libjpeg would paint over is an error here: grey pixels are no right answer.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_JPEG_EOF:
      on_error(info);
    default:
      return;
  }
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  Session& session = session_of(info);
  std::snprintf(session.message.data(), session.message.size(), "more than %d scans", kMaxScans);
  std::longjmp(session.escape, 1);
}

Orientation orientation_of(const jpeg_decompress_struct& info) {
  using namespace std::string_view_literals;
  for (const jpeg_marker_struct* marker = info.marker_list; marker; marker = marker->next) {
    const Bytes bytes(marker->data, marker->data_length);
    if (as_text(bytes).starts_with("Exif\0\0"sv)) return exif_orientation(bytes);
  }
  return Orientation::kUpright;
}

void spread_gray(std::uint8_t* row, std::size_t width) {
  for (std::size_t x = width; x-- > 0;) std::fill_n(row + x * 3, 3, row[x]);
}

// Adobe's programs store ink inverted and everyone reads all files so. The arithmetic is Pillow's.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t width) {
  for (std::size_t x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const int white = cmyk[3];
    for (int i = 0; i < 3; ++i) {
      const int product = (255 - cmyk[i]) * white + 128;
      rgb[i] =
          static_cast<std::uint8_t>(std::clamp(white - ((product + (product >> 8)) >> 8), 0, 255));
    }
  }
}

class JpegReader {
 public:
  explicit JpegReader(Bytes bytes) : bytes_(bytes) {
    info_.err = jpeg_std_error(&session_.errors);
    session_.errors.error_exit = on_error;
    session_.errors.emit_message = on_message;
    info_.client_data = &session_;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Each step holds the one setjmp of its calls and no object with a destructor.
  bool read_header() {
    if (setjmp(session_.escape)) return false;
    jpeg_create_decompress(&info_);
    session_.progress.progress_monitor = on_progress;
    info_.progress = &session_.progress;
    jpeg_mem_src(&info_, bytes_.data(), bytes_.size());
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool read_pixels(std::uint8_t* rgb, std::uint8_t* cmyk_row) {
    if (setjmp(session_.escape)) return false;
    if (info_.num_components == 1)
      info_.out_color_space = JCS_GRAYSCALE;
    else
      info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    const std::size_t width = info_.output_width;
    while (info_.output_scanline < info_.output_height) {
      std::uint8_t* to = rgb + std::size_t{info_.output_scanline} * width * 3;
      JSAMPROW row = info_.num_components == 4 ? cmyk_row : to;
      jpeg_read_scanlines(&info_, &row, 1);
      if (info_.num_components == 4) cmyk_to_rgb(cmyk_row, to, width);
      if (info_.num_components == 1) spread_gray(to, width);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  const jpeg_decompress_struct& info() const { return info_; }
  const char* message() const { return session_.message.data(); }

 private:
  Bytes bytes_;
  Session session_;
  jpeg_decompress_struct info_{};
};

}  // namespace

DecodedImage decode_jpeg(Bytes bytes, std::uint64_t max_pixels) {
  JpegReader reader(bytes);
  if (!reader.read_header()) throw_damaged("JPEG", reader.message());
  const jpeg_decompress_struct& info = reader.info();
  if (info.data_precision != 8 ||
      (info.num_components != 1 && info.num_components != 3 && info.num_components != 4))
    throw_error(ErrorCode::kUnsupported, "",
                "a JPEG of {} components of {} bits, expected 1, 3 or 4 of 8", info.num_components,
                info.data_precision);
  DecodedImage decoded{make_image(info.image_height, info.image_width, max_pixels, "JPEG"),
                       orientation_of(info)};
  std::vector<std::uint8_t> cmyk_row(info.num_components == 4 ? decoded.image.width * 4 : 0);
  if (!reader.read_pixels(decoded.image.rgb.data(), cmyk_row.data()))
    throw_damaged("JPEG", reader.message());
  return decoded;
}

}  // namespace clefkit::decoder
