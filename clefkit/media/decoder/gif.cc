#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/image_formats.h"

namespace clefkit::decoder {
namespace {

[[noreturn]] void damaged(int error) {
  const char* what = GifErrorString(error);
  throw_error(ErrorCode::kInvalidArgument, "", "a damaged GIF ({}), expected a whole picture",
              what ? what : "for no reason that its decoder knows");
}

int on_read(GifFileType* gif, GifByteType* to, int size) {
  auto& rest = *static_cast<Bytes*>(gif->UserData);
  const std::size_t count = std::min(rest.size(), static_cast<std::size_t>(size));
  std::memcpy(to, rest.data(), count);
  rest = rest.subspan(count);
  return static_cast<int>(count);
}

struct CloseGif {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

// Reads to the first picture's descriptor; returns which color is transparent, or −1.
int find_picture(GifFileType* gif) {
  int transparent = NO_TRANSPARENT_COLOR;
  for (;;) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &record) == GIF_ERROR) damaged(gif->Error);
    if (record == IMAGE_DESC_RECORD_TYPE) return transparent;
    if (record != EXTENSION_RECORD_TYPE) damaged(D_GIF_ERR_NO_IMAG_DSCR);
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) damaged(gif->Error);
    while (block) {
      GraphicsControlBlock control{};
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        transparent = control.TransparentColor;
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) damaged(gif->Error);
    }
  }
}

// The row that comes `index`-th in the file.
std::size_t row_of(std::size_t index, std::size_t height, bool interlaced) {
  if (!interlaced) return index;
  constexpr std::size_t kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass) {
    const std::size_t rows =
        height > kFirst[pass] ? (height - kFirst[pass] + kStep[pass] - 1) / kStep[pass] : 0;
    if (index < rows) return kFirst[pass] + index * kStep[pass];
    index -= rows;
  }
  return height - 1;
}

// As Pillow: colors beyond the palette are black, and a file without one is grey.
void put_color(std::uint8_t* to, const ColorMapObject* colors, int index) {
  if (!colors) {
    std::fill_n(to, 3, static_cast<std::uint8_t>(index));
  } else if (index < colors->ColorCount) {
    const GifColorType& color = colors->Colors[index];
    to[0] = color.Red;
    to[1] = color.Green;
    to[2] = color.Blue;
  }
}

}  // namespace

DecodedImage decode_gif(Bytes bytes, std::uint64_t max_pixels) {
  int error = 0;
  Bytes rest = bytes;
  const std::unique_ptr<GifFileType, CloseGif> gif(DGifOpen(&rest, on_read, &error));
  if (!gif) damaged(error);
  const int transparent = find_picture(gif.get());
  // Only the header of it: DGifGetImageDesc also keeps memory, but none that grows with the size.
  if (DGifGetImageDesc(gif.get()) == GIF_ERROR) damaged(gif->Error);
  const GifImageDesc& frame = gif->Image;
  if (frame.Left < 0 || frame.Top < 0 || frame.Width <= 0 || frame.Height <= 0)
    damaged(D_GIF_ERR_NO_IMAG_DSCR);
  const auto left = static_cast<std::size_t>(frame.Left), top = static_cast<std::size_t>(frame.Top);
  const auto width = static_cast<std::size_t>(frame.Width);
  const auto height = static_cast<std::size_t>(frame.Height);
  // The screen grows to a first picture that is larger, as in Pillow.
  DecodedImage decoded{
      make_image(std::max(top + height, static_cast<std::size_t>(std::max(gif->SHeight, 0))),
                 std::max(left + width, static_cast<std::size_t>(std::max(gif->SWidth, 0))),
                 max_pixels, "GIF"),
      Orientation::kUpright};
  Image& image = decoded.image;
  const ColorMapObject* colors = frame.ColorMap ? frame.ColorMap : gif->SColorMap;
  if (width < image.width || height < image.height) {
    for (std::size_t i = 0; i < image.rgb.size(); i += 3)
      put_color(image.rgb.data() + i, colors, std::max(transparent, 0));
  }
  std::vector<GifPixelType> row(width);
  for (std::size_t i = 0; i < height; ++i) {
    if (DGifGetLine(gif.get(), row.data(), frame.Width) == GIF_ERROR) damaged(gif->Error);
    const std::size_t y = top + row_of(i, height, frame.Interlace);
    std::uint8_t* to = image.rgb.data() + (y * image.width + left) * 3;
    for (std::size_t x = 0; x < width; ++x) put_color(to + x * 3, colors, row[x]);
  }
  return decoded;
}

}  // namespace clefkit::decoder
