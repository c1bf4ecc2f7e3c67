#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/image_formats.h"

namespace clefkit::decoder {
namespace {

struct FirstFrame {
  explicit FirstFrame(const WebPDemuxer* demuxer) {
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) throw_damaged("WebP", "no picture in it");
  }
  ~FirstFrame() { WebPDemuxReleaseIterator(&frame); }
  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;
  WebPIterator frame{};
};

Orientation orientation_of(const WebPDemuxer* demuxer) {
  WebPChunkIterator chunk{};
  Orientation orientation = Orientation::kUpright;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk))
    orientation = exif_orientation({chunk.chunk.bytes, chunk.chunk.size});
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

DecodedImage decode_webp(Bytes bytes, std::uint64_t max_pixels) {
  const WebPData data{bytes.data(), bytes.size()};
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(WebPDemux(&data),
                                                                         WebPDemuxDelete);
  if (!demuxer) throw_damaged("WebP", "its parts do not fit together");
  DecodedImage decoded{
      make_image(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT),
                 WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH), max_pixels, "WebP"),
      orientation_of(demuxer.get())};
  Image& image = decoded.image;
  const FirstFrame first(demuxer.get());
  const WebPIterator& frame = first.frame;
  // A frame of an animation may cover part of the canvas; the rest stays black.
  const std::size_t x = static_cast<std::size_t>(frame.x_offset);
  const std::size_t y = static_cast<std::size_t>(frame.y_offset);
  const std::size_t width = static_cast<std::size_t>(frame.width);
  const std::size_t height = static_cast<std::size_t>(frame.height);
  int stored_width = 0, stored_height = 0;
  if (!frame.complete || frame.x_offset < 0 || frame.y_offset < 0 || frame.width <= 0 ||
      frame.height <= 0 || x + width > image.width || y + height > image.height ||
      !WebPGetInfo(frame.fragment.bytes, frame.fragment.size, &stored_width, &stored_height) ||
      stored_width != frame.width || stored_height != frame.height)
    throw_damaged("WebP", "a frame that does not fit");
  const std::size_t stride = image.width * 3, offset = y * stride + x * 3;
  if (!WebPDecodeRGBInto(frame.fragment.bytes, frame.fragment.size, image.rgb.data() + offset,
                         image.rgb.size() - offset, static_cast<int>(stride)))
    throw_damaged("WebP", "its pixels cannot be decoded");
  return decoded;
}

}  // namespace clefkit::decoder
