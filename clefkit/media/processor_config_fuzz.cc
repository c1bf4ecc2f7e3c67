#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/media/processor.h"

using namespace clefkit;

// Whatever is accepted keeps pictures and clips within bounds. Seeds are a processor_config.json, a
// zero byte and media_kwargs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\0');
  if (cut == std::string_view::npos) return 0;
  const std::array<double, 9> seconds{0, 0.1, 0.2, 0.5, 0.6, 0.7, 2, 2.1, 2.5};
  for (const MediaProfile profile : {MediaProfile::kRelease, MediaProfile::kAne}) {
    try {
      ProcessorSettings settings = parse_processor_config(text.substr(0, cut), "config", profile);
      const std::size_t most = std::max(settings.image.max_pixels, settings.video.max_pixels);
      settings = apply_media_kwargs(settings, parse_json(text.substr(cut + 1), "kwargs", {}));
      if (settings.image.max_pixels > most || settings.video.max_pixels > most) std::abort();
      const Size picture = picture_size({30, 40}, settings);
      if (picture.height % settings.factor() != 0 || picture.height == 0) std::abort();
      const ChosenFrames chosen = sample_frames(seconds, settings);
      if (chosen.indices.empty() || chosen.indices.size() != chosen.seconds.size()) std::abort();
      if (chosen.indices.size() > settings.max_frames) std::abort();
      for (const std::size_t index : chosen.indices) {
        if (index >= seconds.size()) std::abort();
      }
    } catch (const Error&) {
    }
  }
  return 0;
}
