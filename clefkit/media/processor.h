#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/media/image.h"
#include "clefkit/media/resize.h"

namespace clefkit {

// Whose limits pictures are prepared with: the release's own, or those of the Neural Engine
// conversion (model.md 5.3).
enum class MediaProfile { kRelease, kAne };

// How pictures and clips become patches: processor_config.json, narrowed by a profile, changed by a
// request's `media_kwargs`.
struct ProcessorSettings {
  MediaProfile profile = MediaProfile::kRelease;
  ResizeRecipe recipe = ResizeRecipe::kTorchvision;  // The profile's, unless a caller sets another.
  std::size_t patch_size = 16;
  std::size_t temporal_patch_size = 2;
  std::size_t merge_size = 2;
  PixelLimits image{.min_pixels = 65'536, .max_pixels = 16'777'216};
  PixelLimits video{.min_pixels = 4'096, .max_pixels = 25'165'824};  // Of all frames together.
  double fps = 2;
  std::size_t min_frames = 4;
  std::size_t max_frames = 768;
  std::optional<std::size_t> num_frames;  // Exactly so many frames, whatever `fps` says.
  // With `ane` no picture and no frame has more pixels than these, whatever the limits above say.
  std::optional<std::size_t> pixels_per_picture;
  std::optional<std::size_t> pixels_per_frame;

  // Sides of a picture are multiples of this.
  std::size_t factor() const { return patch_size * merge_size; }
};

// Reads the text of processor_config.json; only the processors and values that this code computes
// are accepted. Throws Error(kCorruptData, kUnsupported) with the key.
ProcessorSettings parse_processor_config(std::string_view json, const std::string& where,
                                         MediaProfile profile);

// Applies a request's `media_kwargs` as the reference's processors do: `size` for pictures and
// clips, `min_pixels` with `max_pixels` for pictures, `fps` (or `num_frames` with a null `fps`) for
// clips; `images_kwargs` and `videos_kwargs` hold the same for one kind alone. What would change
// nothing is accepted, everything else refused. Throws Error(kInvalidArgument) with the key.
ProcessorSettings apply_media_kwargs(ProcessorSettings settings, const Json& kwargs);

// The size that the model sees a picture, or each of `frames` frames, at. Known before any pixel
// is, so that a caller can count tokens (height · width / factor²) first. Throws
// Error(kInvalidArgument) for empty sizes and ratios over 200.
Size picture_size(Size source, const ProcessorSettings& settings);
Size frame_size(std::size_t frames, Size source, const ProcessorSettings& settings);

// Pixel values in the vision encoder's order (model.md 4): rows of patches, four of a 2×2 block in
// succession; a row holds channel, frame of the pair, y, x.
struct Patches {
  std::size_t grid_t = 0, grid_h = 0, grid_w = 0;  // Frame pairs, patch rows, patch columns.
  std::vector<float> values;                       // [grid_t · grid_h · grid_w, patch values]
  std::vector<double> timestamps;                  // Of each frame pair, in seconds; clips only.
};

Patches image_patches(const Image& image, const ProcessorSettings& settings);

// Which frames of a clip the model sees, ascending, and the times that the prompt gives them.
struct ChosenFrames {
  std::vector<std::size_t> indices;
  std::vector<double> seconds;
};

// `seconds` are the presentation times of all frames, ascending from 0. The release takes frames at
// equal steps of a constant rate, and its times are index / rate (model.md 5.2); `ane` takes those
// nearest to equally spaced times, with their own times (5.3). An index is repeated only when
// `num_frames` asks for more than there are. Throws Error(kInvalidArgument) for no frames at all.
ChosenFrames sample_frames(std::span<const double> seconds, const ProcessorSettings& settings);

// Makes a clip's patches of one full-size frame at a time, so that only their small versions are
// ever held.
class VideoPatchBuilder {
 public:
  // `seconds` are ChosenFrames::seconds: as many frames follow. Throws Error(kInvalidArgument) when
  // there are none.
  VideoPatchBuilder(std::vector<double> seconds, const ProcessorSettings& settings);

  // The next frame; the first one's size decides the size of all. Throws Error(kInvalidArgument)
  // for another size than the first frame's and for sizes that frame_size() refuses.
  void add(const Image& frame);

  // After the last frame: an odd one is doubled to make a pair. Throws Error(kInvalidArgument) when
  // frames are missing (a clip that ended early).
  Patches finish();

 private:
  ProcessorSettings settings_;
  std::vector<double> seconds_;
  std::size_t added_ = 0;
  Size source_;  // Of the first frame.
  Size resized_;
  Patches patches_;
};

}  // namespace clefkit
