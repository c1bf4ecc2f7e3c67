#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/engine/record.h"
#include "clefkit/media/media_decoder.h"
#include "clefkit/media/media_source.h"
#include "clefkit/media/processor.h"
#include "clefkit/model/model.h"
#include "clefkit/questions/request.h"

namespace clefkit {

// How a request's pictures and clips are found, decoded and prepared.
struct MediaOptions {
  MediaProfile profile = MediaProfile::kAne;
  std::optional<ResizeRecipe> resize{};  // Default: the profile's.
  ExifOrientation exif = ExifOrientation::kApply;
  // Whether `file:` paths are read, and what relative ones are relative to.
  bool allow_files = false;
  std::filesystem::path base_directory{};
  std::size_t max_items = 64;  // Pictures and clips of a request together.
  MediaLimits limits{};
  std::filesystem::path decoder_program{};  // As MediaDecoder takes it.
};

// A picture or clip as the model reads it.
struct PreparedMedia {
  MediaItem item;
  std::vector<float> pixels;  // [patches, patch_values], in the vision encoder's order.
  std::string digest;         // SHA-256 of size and pixels, hex.
};

// Decodes and prepares what a request shows, pictures before clips. Throws Error: kInvalidArgument
// naming the item (`images[0]`) for media that are broken, beyond a limit, or more than
// `max_tokens` tokens together; kUnsupported when the model has no vision encoder or the build no
// codec; kCancelled.
std::vector<PreparedMedia> prepare_media(const ModelFiles& model, const Request& request,
                                         const MediaOptions& options, std::size_t max_tokens,
                                         const CancelToken* cancel = nullptr);

// What encode_record needs to know of them.
std::vector<MediaItem> media_items(std::span<const PreparedMedia> media);

}  // namespace clefkit
