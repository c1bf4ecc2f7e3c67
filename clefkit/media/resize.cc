#include "clefkit/media/resize.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

constexpr std::size_t kChannels = 3;

double bicubic_kernel(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

// What one output coordinate is made of: `count` inputs from `first` on.
struct Tap {
  std::size_t first = 0;
  std::size_t count = 0;
};

struct AxisWeights {
  std::vector<Tap> taps;              // One an output coordinate.
  std::size_t stride = 0;             // Weights from one tap to the next.
  std::vector<std::int32_t> weights;  // [taps, stride], scaled by 2^shift
  int shift = 0;
};

// Doubles that sum to 1 for each output coordinate.
std::vector<double> exact_weights(std::size_t input, std::size_t output, AxisWeights& axis) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double stretch = std::max(1.0, scale);
  const double support = 2.0 * stretch;
  axis.stride = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  axis.taps.resize(output);
  std::vector<double> weights(output * axis.stride);
  for (std::size_t x = 0; x < output; ++x) {
    const double centre = (static_cast<double>(x) + 0.5) * scale;
    const auto first = static_cast<std::size_t>(std::max(0.0, centre - support + 0.5));
    const auto last = std::min(input, static_cast<std::size_t>(centre + support + 0.5));
    axis.taps[x] = {first, last - first};
    double* const row = weights.data() + x * axis.stride;
    double sum = 0;
    for (std::size_t i = 0; i < last - first; ++i) {
      row[i] = bicubic_kernel((static_cast<double>(first + i) - centre + 0.5) * (1.0 / stretch));
      sum += row[i];
    }
    for (std::size_t i = 0; i < last - first; ++i) row[i] *= 1.0 / sum;
  }
  return weights;
}

int torchvision_shift(const std::vector<double>& weights) {
  const double largest = *std::ranges::max_element(weights);
  int shift = 0;
  while (shift < 22 && std::trunc(0.5 + largest * std::ldexp(1.0, shift + 1)) < 32768.0) ++shift;
  return shift;
}

AxisWeights axis_weights(std::size_t input, std::size_t output, ResizeRecipe recipe) {
  AxisWeights axis;
  const std::vector<double> exact = exact_weights(input, output, axis);
  axis.shift = recipe == ResizeRecipe::kPillow ? 22 : torchvision_shift(exact);
  axis.weights.reserve(exact.size());
  for (const double weight : exact) {
    const double scaled = std::ldexp(weight, axis.shift);
    axis.weights.push_back(
        static_cast<std::int32_t>(std::trunc(scaled + (scaled < 0 ? -0.5 : 0.5))));
  }
  return axis;
}

std::uint8_t rounded(std::int32_t sum, int shift) {
  return static_cast<std::uint8_t>(std::clamp(sum >> shift, 0, 255));
}

std::int32_t half(int shift) { return shift == 0 ? 0 : std::int32_t{1} << (shift - 1); }

Image resize_horizontally(const Image& image, std::size_t width, ResizeRecipe recipe) {
  const AxisWeights axis = axis_weights(image.width, width, recipe);
  Image out{image.height, width, std::vector<std::uint8_t>(image.height * width * kChannels)};
  for (std::size_t y = 0; y < image.height; ++y) {
    const std::uint8_t* const row = image.rgb.data() + y * image.width * kChannels;
    std::uint8_t* to = out.rgb.data() + y * width * kChannels;
    for (std::size_t x = 0; x < width; ++x, to += kChannels) {
      const auto [first, count] = axis.taps[x];
      const std::int32_t* const weights = axis.weights.data() + x * axis.stride;
      std::int32_t sums[kChannels] = {half(axis.shift), half(axis.shift), half(axis.shift)};
      const std::uint8_t* from = row + first * kChannels;
      for (std::size_t i = 0; i < count; ++i, from += kChannels) {
        for (std::size_t c = 0; c < kChannels; ++c) sums[c] += weights[i] * from[c];
      }
      for (std::size_t c = 0; c < kChannels; ++c) to[c] = rounded(sums[c], axis.shift);
    }
  }
  return out;
}

Image resize_vertically(const Image& image, std::size_t height, ResizeRecipe recipe) {
  const AxisWeights axis = axis_weights(image.height, height, recipe);
  const std::size_t row_size = image.width * kChannels;
  Image out{height, image.width, std::vector<std::uint8_t>(height * row_size)};
  std::vector<std::int32_t> sums(row_size);
  for (std::size_t y = 0; y < height; ++y) {
    std::ranges::fill(sums, half(axis.shift));
    const auto [first, count] = axis.taps[y];
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t weight = axis.weights[y * axis.stride + i];
      const std::uint8_t* const row = image.rgb.data() + (first + i) * row_size;
      for (std::size_t x = 0; x < row_size; ++x) sums[x] += weight * row[x];
    }
    std::uint8_t* const to = out.rgb.data() + y * row_size;
    for (std::size_t x = 0; x < row_size; ++x) to[x] = rounded(sums[x], axis.shift);
  }
  return out;
}

void check_ratio(Size size) {
  const std::size_t longer = std::max(size.height, size.width);
  const std::size_t shorter = std::min(size.height, size.width);
  if (shorter == 0) {
    throw_error(ErrorCode::kInvalidArgument, "", "a picture of {}x{} pixels, expected at least 1x1",
                size.width, size.height);
  }
  if (static_cast<double>(longer) / static_cast<double>(shorter) > 200) {
    throw_error(ErrorCode::kInvalidArgument, "",
                "a picture of {}x{} pixels, expected one side at most 200 times the other",
                size.width, size.height);
  }
}

// The nearest multiple, ties to the even one.
std::size_t nearest_multiple(double value, std::size_t factor) {
  return static_cast<std::size_t>(std::nearbyint(value / static_cast<double>(factor))) * factor;
}
std::size_t multiple_below(double value, std::size_t factor) {
  return static_cast<std::size_t>(std::floor(value / static_cast<double>(factor))) * factor;
}
std::size_t multiple_above(double value, std::size_t factor) {
  return static_cast<std::size_t>(std::ceil(value / static_cast<double>(factor))) * factor;
}

// `volume` frames count against the limits for the rounded size, `frames` for the true one.
Size fit(Size size, std::size_t factor, PixelLimits limits, double frames, double volume) {
  const auto height = static_cast<double>(size.height);
  const auto width = static_cast<double>(size.width);
  const auto max_pixels = static_cast<double>(limits.max_pixels);
  const auto min_pixels = static_cast<double>(limits.min_pixels);
  Size out{nearest_multiple(height, factor), nearest_multiple(width, factor)};
  const double pixels = volume * static_cast<double>(out.height) * static_cast<double>(out.width);
  if (pixels > max_pixels) {
    const double beta = std::sqrt(frames * height * width / max_pixels);
    out = {std::max(factor, multiple_below(height / beta, factor)),
           std::max(factor, multiple_below(width / beta, factor))};
  } else if (pixels < min_pixels) {
    const double beta = std::sqrt(min_pixels / (frames * height * width));
    out = {multiple_above(height * beta, factor), multiple_above(width * beta, factor)};
  }
  return out;
}

}  // namespace

Image resize_bicubic(const Image& image, std::size_t height, std::size_t width,
                     ResizeRecipe recipe) {
  Image out = width == image.width ? image : resize_horizontally(image, width, recipe);
  return height == out.height ? out : resize_vertically(out, height, recipe);
}

Size smart_resize(Size size, std::size_t factor, PixelLimits limits) {
  check_ratio(size);
  return fit(size, factor, limits, 1, 1);
}

Size smart_resize_video(std::size_t frames, Size size, std::size_t factor, PixelLimits limits) {
  check_ratio(size);
  if (size.height < factor || size.width < factor) {
    const double scale = std::max(static_cast<double>(factor) / static_cast<double>(size.height),
                                  static_cast<double>(factor) / static_cast<double>(size.width));
    size = {static_cast<std::size_t>(static_cast<double>(size.height) * scale),
            static_cast<std::size_t>(static_cast<double>(size.width) * scale)};
  }
  const double volume = 2 * std::ceil(static_cast<double>(frames) / 2);
  return fit(size, factor, limits, static_cast<double>(frames), volume);
}

}  // namespace clefkit
