#pragma once

#include <cstddef>

#include "clefkit/media/image.h"

namespace clefkit {

// Whose bicubic resampling is reproduced to the byte (model.md 5.1). They share the kernel
// (a = −0.5, stretched when shrinking) and differ in the bits of a weight: 22, or at most 15.
enum class ResizeRecipe { kPillow, kTorchvision };

// Both sizes are at least 1. An axis whose size does not change is left as it is.
Image resize_bicubic(const Image& image, std::size_t height, std::size_t width,
                     ResizeRecipe recipe);

struct Size {
  std::size_t height = 0;
  std::size_t width = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

struct PixelLimits {
  std::size_t min_pixels = 0;
  std::size_t max_pixels = 0;
};

// The size the model sees a picture at: multiples of `factor` (32), between the limits, near the
// picture's own (model.md 5.1). Throws Error(kInvalidArgument) for an empty picture or one side
// more than 200 times the other.
Size smart_resize(Size size, std::size_t factor, PixelLimits limits);

// The same for a clip of `frames` frames, whose limits count the pixels of all (model.md 5.2). A
// side below `factor` is first scaled up to it.
Size smart_resize_video(std::size_t frames, Size size, std::size_t factor, PixelLimits limits);

}  // namespace clefkit
