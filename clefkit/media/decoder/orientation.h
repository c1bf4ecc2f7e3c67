#pragma once

#include <cstdint>

#include "clefkit/base/bytes.h"
#include "clefkit/media/image.h"

namespace clefkit::decoder {

// How stored pixels are to be shown; the numbers are EXIF's.
enum class Orientation : std::uint8_t {
  kUpright = 1,
  kMirrored = 2,  // left and right exchanged
  kHalfTurn = 3,
  kFlipped = 4,  // top and bottom exchanged
  kTransposed = 5,
  kQuarterTurn = 6,  // shown after a quarter turn clockwise
  kTransversed = 7,
  kQuarterTurnBack = 8,
};

Image turned(Image image, Orientation orientation);

// From a TIFF block, with or without the "Exif\0\0" before it. Anything odd is upright: a picture
// is not refused for its notes.
Orientation exif_orientation(Bytes exif);

}  // namespace clefkit::decoder
