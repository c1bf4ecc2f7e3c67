#pragma once

#include "clefkit/media/image.h"

struct AVFrame;

namespace clefkit::decoder {

// 8-bit RGB by swscale, as the reference's readers use it, with the frame's own color matrix and
// range. RGB frames of 8 bits keep their values; alpha is dropped.
Image frame_to_rgb(const AVFrame& frame);

}  // namespace clefkit::decoder
