#include "clefkit/media/decoder/frame_to_rgb.h"

#include <cstring>
#include <memory>
#include <new>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/ffmpeg.h"

namespace clefkit::decoder {
namespace {

// Vector code may write this far past a row.
constexpr int kRowAlignment = 64;

struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};
struct FreeMemory {
  void operator()(std::uint8_t* memory) const { av_free(memory); }
};

bool is_rgb(AVPixelFormat format) {
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  return description && (description->flags & AV_PIX_FMT_FLAG_RGB);
}

bool is_full_range(const AVFrame& frame) {
  switch (frame.format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P:
      return true;
    default:
      return frame.color_range == AVCOL_RANGE_JPEG;
  }
}

}  // namespace

Image frame_to_rgb(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  if (!sws_isSupportedInput(format)) {
    const char* name = av_get_pix_fmt_name(format);
    throw_error(ErrorCode::kUnsupported, "", "frames of {}, expected a format that becomes RGB",
                name ? name : "an unknown pixel format");
  }
  // As PyAV and torchcodec, the reference's readers of clips, convert: no rounding flags.
  const std::unique_ptr<SwsContext, FreeScaler> scaler(
      sws_getContext(frame.width, frame.height, format, frame.width, frame.height, AV_PIX_FMT_RGB24,
                     SWS_BILINEAR, nullptr, nullptr, nullptr));
  if (!scaler) throw std::bad_alloc();
  if (!is_rgb(format)) {
    const int* matrix = sws_getCoefficients(frame.colorspace);
    sws_setColorspaceDetails(scaler.get(), matrix, is_full_range(frame), matrix, 1, 0, 1 << 16,
                             1 << 16);
  }
  std::uint8_t* planes[4] = {};
  int strides[4] = {};
  if (av_image_alloc(planes, strides, frame.width, frame.height, AV_PIX_FMT_RGB24, kRowAlignment) <
      0)
    throw std::bad_alloc();
  const std::unique_ptr<std::uint8_t, FreeMemory> rows(planes[0]);
  if (sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, planes, strides) !=
      frame.height)
    throw_error(ErrorCode::kInvalidArgument, "",
                "a frame that cannot become RGB, expected all rows");
  Image image{.height = static_cast<std::size_t>(frame.height),
              .width = static_cast<std::size_t>(frame.width),
              .rgb = {}};
  image.rgb.resize(image.height * image.width * 3);
  for (std::size_t y = 0; y < image.height; ++y)
    std::memcpy(image.rgb.data() + y * image.width * 3,
                planes[0] + y * static_cast<std::size_t>(strides[0]), image.width * 3);
  return image;
}

}  // namespace clefkit::decoder
