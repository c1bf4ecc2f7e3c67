#include "clefkit/media/decoder/orientation.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace clefkit::decoder {
namespace {

constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kShort = 3;

class TiffReader {
 public:
  explicit TiffReader(Bytes bytes) : bytes_(bytes), big_endian_(bytes[0] == 'M') {}

  bool holds(std::size_t offset, std::size_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  std::uint32_t u16(std::size_t at) const {
    return big_endian_ ? bytes_[at] << 8U | bytes_[at + 1] : bytes_[at] | bytes_[at + 1] << 8U;
  }
  std::uint32_t u32(std::size_t at) const {
    return big_endian_ ? u16(at) << 16U | u16(at + 2) : u16(at) | u16(at + 2) << 16U;
  }

 private:
  Bytes bytes_;
  bool big_endian_;
};

// Where the pixel shown at (y, x) is stored, as a walk: start + y · per_row + x · per_column.
struct Walk {
  std::ptrdiff_t start, per_row, per_column;
};

Walk walk_of(Orientation orientation, std::ptrdiff_t height, std::ptrdiff_t width) {
  const std::ptrdiff_t last_row = (height - 1) * width, last_column = width - 1;
  switch (orientation) {
    case Orientation::kMirrored:
      return {last_column, width, -1};
    case Orientation::kHalfTurn:
      return {last_row + last_column, -width, -1};
    case Orientation::kFlipped:
      return {last_row, -width, 1};
    case Orientation::kTransposed:
      return {0, 1, width};
    case Orientation::kQuarterTurn:
      return {last_row, 1, -width};
    case Orientation::kTransversed:
      return {last_row + last_column, -1, -width};
    case Orientation::kQuarterTurnBack:
      return {last_column, -1, width};
    case Orientation::kUpright:
      break;
  }
  return {0, width, 1};
}

}  // namespace

Image turned(Image image, Orientation orientation) {
  if (orientation == Orientation::kUpright || image.rgb.empty()) return image;
  const Walk walk = walk_of(orientation, static_cast<std::ptrdiff_t>(image.height),
                            static_cast<std::ptrdiff_t>(image.width));
  Image result{.height = image.height, .width = image.width, .rgb = {}};
  if (orientation >= Orientation::kTransposed) std::swap(result.height, result.width);
  result.rgb.resize(image.rgb.size());
  std::uint8_t* to = result.rgb.data();
  for (std::size_t y = 0; y < result.height; ++y) {
    std::ptrdiff_t from = walk.start + static_cast<std::ptrdiff_t>(y) * walk.per_row;
    for (std::size_t x = 0; x < result.width; ++x, to += 3, from += walk.per_column)
      std::memcpy(to, image.rgb.data() + from * 3, 3);
  }
  return result;
}

Orientation exif_orientation(Bytes exif) {
  using namespace std::string_view_literals;
  if (as_text(exif).starts_with("Exif\0\0"sv)) exif = exif.subspan(6);
  const std::string_view text = as_text(exif);
  if (!text.starts_with("II*\0"sv) && !text.starts_with("MM\0*"sv)) return Orientation::kUpright;
  const TiffReader tiff(exif);
  if (!tiff.holds(4, 4)) return Orientation::kUpright;
  const std::size_t directory = tiff.u32(4);
  if (!tiff.holds(directory, 2)) return Orientation::kUpright;
  const std::size_t entries = tiff.u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * 12;
    if (!tiff.holds(entry, 12)) break;
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t value = tiff.u16(entry + 8);
    if (tiff.u16(entry + 2) != kShort || value < 1 || value > 8) break;
    return static_cast<Orientation>(value);
  }
  return Orientation::kUpright;
}

}  // namespace clefkit::decoder
