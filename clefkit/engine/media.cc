#include "clefkit/engine/media.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/sha256.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {
namespace {

std::string digest_of(const Patches& patches) {
  const std::array<std::uint64_t, 3> grid{patches.grid_t, patches.grid_h, patches.grid_w};
  Sha256 sha;
  sha.update({reinterpret_cast<const std::uint8_t*>(grid.data()), sizeof(grid)});
  sha.update({reinterpret_cast<const std::uint8_t*>(patches.values.data()),
              patches.values.size() * sizeof(float)});
  return sha.finish();
}

PreparedMedia prepared(MediaItem::Kind kind, Patches patches) {
  PreparedMedia media;
  media.digest = digest_of(patches);
  media.item = {.kind = kind,
                .grid_t = patches.grid_t,
                .grid_h = patches.grid_h,
                .grid_w = patches.grid_w,
                .timestamps = std::move(patches.timestamps)};
  media.pixels = std::move(patches.values);
  return media;
}

// What goes wrong with a picture's size is told with the picture's place.
template <typename Function>
auto at_place(const std::string& where, Function&& function) {
  try {
    return function();
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.code(), where, error.message());
  }
}

// The media of one request, one after the other.
class Preparation {
 public:
  Preparation(const ModelFiles& model, const Request& request, const MediaOptions& options,
              std::size_t max_tokens, const CancelToken* cancel)
      : options_(options),
        settings_(parse_processor_config(model.processor_config_json, kProcessorConfigFile,
                                         options.profile)),
        source_{.allow_files = options.allow_files,
                .base_directory = options.base_directory,
                .max_bytes = options.limits.bytes},
        decoder_(options.limits, options.decoder_program),
        tokens_left_(max_tokens),
        max_tokens_(max_tokens),
        cancel_(cancel) {
    if (options.resize) settings_.recipe = *options.resize;
    if (request.media_kwargs) settings_ = apply_media_kwargs(settings_, *request.media_kwargs);
    check_agreement(model.config.vision);
  }

  PreparedMedia image(const MediaSource& source) {
    const std::string& where = source.place;
    const std::vector<std::uint8_t> bytes = read_media_source(source.value, where, source_);
    const Image image = decoder_.decode_image(bytes, options_.exif, where, cancel_);
    return at_place(where, [&] {
      take_tokens(1, picture_size({image.height, image.width}, settings_));
      return prepared(MediaItem::Kind::kImage, image_patches(image, settings_));
    });
  }

  PreparedMedia video(const MediaSource& source) {
    const std::string& where = source.place;
    const std::vector<std::uint8_t> bytes = read_media_source(source.value, where, source_);
    return at_place(where, [&] {
      std::optional<VideoPatchBuilder> builder;
      std::size_t frames = 0, added = 0;
      decoder_.decode_video(
          bytes, where,
          [&](std::span<const double> seconds) {
            ChosenFrames chosen = sample_frames(seconds, settings_);
            frames = chosen.indices.size();
            builder.emplace(std::move(chosen.seconds), settings_);
            return std::move(chosen.indices);
          },
          [&](const Image& frame, double) {
            const std::size_t pair = settings_.temporal_patch_size;
            if (added++ == 0) {
              take_tokens((frames + pair - 1) / pair,
                          frame_size(frames, {frame.height, frame.width}, settings_));
            }
            builder->add(frame);
          },
          cancel_);
      return prepared(MediaItem::Kind::kVideo, builder->finish());
    });
  }

 private:
  void check_agreement(const VisionConfig& vision) const {
    if (settings_.patch_size == vision.patch_size &&
        settings_.temporal_patch_size == vision.temporal_patch_size &&
        settings_.merge_size == vision.spatial_merge_size) {
      return;
    }
    throw_error(ErrorCode::kCorruptData, kProcessorConfigFile,
                "patches of {}x{} in {} frames, merged {}x{}, expected config.json's {}x{} in {}, "
                "merged {}x{}",
                settings_.patch_size, settings_.patch_size, settings_.temporal_patch_size,
                settings_.merge_size, settings_.merge_size, vision.patch_size, vision.patch_size,
                vision.temporal_patch_size, vision.spatial_merge_size, vision.spatial_merge_size);
  }

  // Before anything is resized: whatever sizes the request asks for, a record must hold them.
  void take_tokens(std::size_t pairs, Size size) {
    const std::size_t area = settings_.factor() * settings_.factor();
    const std::size_t tokens = pairs * (size.height * size.width / area);
    if (tokens > tokens_left_) {
      throw_error(ErrorCode::kTooLarge, "",
                  "{} tokens after {} of the media before it, expected at most {} together", tokens,
                  max_tokens_ - tokens_left_, max_tokens_);
    }
    tokens_left_ -= tokens;
  }

  const MediaOptions& options_;
  ProcessorSettings settings_;
  MediaSourceOptions source_;
  MediaDecoder decoder_;
  std::size_t tokens_left_;
  std::size_t max_tokens_;
  const CancelToken* cancel_;
};

}  // namespace

std::vector<PreparedMedia> prepare_media(const ModelFiles& model, const Request& request,
                                         const MediaOptions& options, std::size_t max_tokens,
                                         const CancelToken* cancel) {
  const std::size_t items = request.images.size() + request.videos.size();
  if (items == 0) return {};
  const std::string first = request.images.empty() ? "videos" : "images";
  if (!model.config.has_vision()) {
    throw Error(ErrorCode::kUnsupported, first,
                "this model has no vision encoder (a text-only bundle has none), expected a "
                "request about text");
  }
  if (items > options.max_items) {
    throw_error(ErrorCode::kInvalidArgument, first, "{} pictures and clips, expected at most {}",
                items, options.max_items);
  }
  Preparation preparation(model, request, options, max_tokens, cancel);
  std::vector<PreparedMedia> media;
  for (const MediaSource& image : request.images) media.push_back(preparation.image(image));
  for (const MediaSource& video : request.videos) media.push_back(preparation.video(video));
  return media;
}

std::vector<MediaItem> media_items(std::span<const PreparedMedia> media) {
  std::vector<MediaItem> items;
  for (const PreparedMedia& one : media) items.push_back(one.item);
  return items;
}

}  // namespace clefkit
