#include "clefkit/media/processor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

constexpr std::size_t kChannels = 3;
constexpr std::size_t kFramesPerPatch = 2;

// The limits that hold once a profile's own are applied.
PixelLimits narrowed(PixelLimits limits, std::optional<std::size_t> most) {
  if (!most) return limits;
  limits.max_pixels = std::min(limits.max_pixels, *most);
  limits.min_pixels = std::min(limits.min_pixels, limits.max_pixels);
  return limits;
}

// What each of the 256 levels becomes: (level / 255 − 0.5) / 0.5 in the form, and so with the
// rounding, that the reference computes.
std::array<float, 256> level_values() {
  std::array<float, 256> values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<float>(i) - 127.5f) / 127.5f;
  }
  return values;
}

std::size_t values_per_patch(const ProcessorSettings& settings) {
  return kChannels * kFramesPerPatch * settings.patch_size * settings.patch_size;
}

// A patch's row among those of its frame pair: blocks row by row, patches of a block row by row.
std::size_t row_of_patch(std::size_t y, std::size_t x, std::size_t grid_w, std::size_t merge) {
  const std::size_t block = y / merge * (grid_w / merge) + x / merge;
  return (block * merge + y % merge) * merge + x % merge;
}

// Writes one frame into its half of a frame pair's rows.
class FrameWriter {
 public:
  FrameWriter(const ProcessorSettings& settings, std::size_t frame_of_pair, float* pair)
      : levels_(level_values()),
        patch_(settings.patch_size),
        merge_(settings.merge_size),
        row_values_(values_per_patch(settings)),
        first_(pair + frame_of_pair * patch_ * patch_) {}

  void write(const Image& frame) const {
    const std::size_t grid_h = frame.height / patch_;
    const std::size_t grid_w = frame.width / patch_;
    for (std::size_t y = 0; y < grid_h; ++y) {
      for (std::size_t x = 0; x < grid_w; ++x) {
        write_patch(frame, y, x, first_ + row_of_patch(y, x, grid_w, merge_) * row_values_);
      }
    }
  }

 private:
  void write_patch(const Image& frame, std::size_t grid_y, std::size_t grid_x, float* to) const {
    const std::size_t channel_values = kFramesPerPatch * patch_ * patch_;
    for (std::size_t y = 0; y < patch_; ++y) {
      const std::size_t pixel = (grid_y * patch_ + y) * frame.width + grid_x * patch_;
      const std::uint8_t* from = frame.rgb.data() + pixel * kChannels;
      for (std::size_t x = 0; x < patch_; ++x) {
        for (std::size_t c = 0; c < kChannels; ++c) {
          to[c * channel_values + y * patch_ + x] = levels_[*from++];
        }
      }
    }
  }

  std::array<float, 256> levels_;
  std::size_t patch_;
  std::size_t merge_;
  std::size_t row_values_;
  float* first_;
};

Patches empty_patches(std::size_t pairs, Size size, const ProcessorSettings& settings) {
  Patches patches{.grid_t = pairs,
                  .grid_h = size.height / settings.patch_size,
                  .grid_w = size.width / settings.patch_size,
                  .values = {},
                  .timestamps = {}};
  patches.values.resize(patches.grid_t * patches.grid_h * patches.grid_w *
                        values_per_patch(settings));
  return patches;
}

float* pair_values(Patches& patches, std::size_t pair) {
  return patches.values.data() + patches.values.size() / patches.grid_t * pair;
}

// The second frame of a pair becomes the first.
void double_frame(const ProcessorSettings& settings, std::span<float> pair) {
  const std::size_t frame = settings.patch_size * settings.patch_size;
  for (std::size_t i = 0; i < pair.size(); i += kFramesPerPatch * frame) {
    std::copy_n(pair.data() + i, frame, pair.data() + i + frame);
  }
}

}  // namespace

Size picture_size(Size source, const ProcessorSettings& settings) {
  return smart_resize(source, settings.factor(),
                      narrowed(settings.image, settings.pixels_per_picture));
}

Size frame_size(std::size_t frames, Size source, const ProcessorSettings& settings) {
  std::optional<std::size_t> most;
  if (settings.pixels_per_frame) most = *settings.pixels_per_frame * frames;
  return smart_resize_video(frames, source, settings.factor(), narrowed(settings.video, most));
}

Patches image_patches(const Image& image, const ProcessorSettings& settings) {
  const Size size = picture_size({image.height, image.width}, settings);
  Patches patches = empty_patches(1, size, settings);
  FrameWriter(settings, 0, patches.values.data())
      .write(resize_bicubic(image, size.height, size.width, settings.recipe));
  double_frame(settings, patches.values);
  return patches;
}

VideoPatchBuilder::VideoPatchBuilder(std::vector<double> seconds, const ProcessorSettings& settings)
    : settings_(settings), seconds_(std::move(seconds)) {
  if (seconds_.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "", "a clip of 0 frames, expected at least 1");
  }
}

void VideoPatchBuilder::add(const Image& frame) {
  const Size size{frame.height, frame.width};
  if (added_ == seconds_.size()) {
    throw_error(ErrorCode::kInvalidArgument, "", "more frames than the {} that were chosen",
                seconds_.size());
  }
  if (added_ == 0) {
    source_ = size;
    resized_ = frame_size(seconds_.size(), size, settings_);
    patches_ = empty_patches((seconds_.size() + 1) / kFramesPerPatch, resized_, settings_);
  } else if (size != source_) {
    throw_error(ErrorCode::kInvalidArgument, "", "frame {} of {}x{} pixels, expected {}x{}", added_,
                size.width, size.height, source_.width, source_.height);
  }
  const std::size_t pair = added_ / kFramesPerPatch;
  FrameWriter(settings_, added_ % kFramesPerPatch, pair_values(patches_, pair))
      .write(resize_bicubic(frame, resized_.height, resized_.width, settings_.recipe));
  ++added_;
}

Patches VideoPatchBuilder::finish() {
  if (added_ != seconds_.size()) {
    throw_error(ErrorCode::kInvalidArgument, "", "a clip that ended after {} of {} frames", added_,
                seconds_.size());
  }
  if (added_ % kFramesPerPatch != 0) {
    const std::size_t values = patches_.values.size() / patches_.grid_t;
    double_frame(settings_, {pair_values(patches_, patches_.grid_t - 1), values});
  }
  for (std::size_t i = 0; i < seconds_.size(); i += kFramesPerPatch) {
    const std::size_t last = std::min(i + kFramesPerPatch, seconds_.size()) - 1;
    patches_.timestamps.push_back((seconds_[i] + seconds_[last]) / 2);
  }
  return std::move(patches_);
}

}  // namespace clefkit
