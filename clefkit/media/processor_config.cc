#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/media/processor.h"

namespace clefkit {
namespace {

constexpr std::size_t kConfigBytes = std::size_t{4} << 20;
// Far above any release (25,165,824), far below what would overflow or exhaust a machine.
constexpr std::size_t kMostPixels = std::size_t{1} << 28;
constexpr std::size_t kMostFrames = 16'384;

constexpr std::size_t kAnePixelsPerPicture = 262'144;
constexpr std::size_t kAnePixelsPerFrame = 65'536;
constexpr std::size_t kAneMaxFrames = 64;

enum class Kind { kPicture, kClip };

// A value with its place, and the code of the error that it may be wrong with.
struct Setting {
  const Json* value = nullptr;  // nullptr: absent. The object read from outlives this.
  std::string where;  // "media_kwargs.size", "processor_config.json: image_processor.size"
  ErrorCode wrong = ErrorCode::kInvalidArgument;
  std::string_view separator = ".";  // Before a member's key.

  bool given() const { return value != nullptr && !value->is_null(); }
  [[noreturn]] void refuse(ErrorCode code, std::string_view expected) const {
    throw_error(code, where, "{}, expected {}", value ? to_string(*value) : "absent", expected);
  }
};

Setting member(const Setting& object, std::string_view key) {
  return {object.value->find(key), object.where + std::string(object.separator) + std::string(key),
          object.wrong};
}

Setting object_member(const Setting& object, std::string_view key) {
  Setting section = member(object, key);
  if (section.value == nullptr || !section.value->is_object()) {
    section.refuse(section.wrong, "an object");
  }
  return section;
}

std::size_t integer(const Setting& setting, std::size_t most) {
  const auto number = setting.value ? setting.value->as_uint64() : std::nullopt;
  if (!number || *number < 1 || *number > most) {
    setting.refuse(setting.wrong, fmt::format("an integer from 1 to {}", most));
  }
  return *number;
}

double positive_number(const Setting& setting) {
  const auto number = setting.value ? setting.value->as_double() : std::nullopt;
  if (!number || !std::isfinite(*number) || *number <= 0) {
    setting.refuse(setting.wrong, "a number above 0");
  }
  return *number;
}

PixelLimits pixel_limits(const Setting& size, std::size_t most) {
  if (size.value == nullptr || !size.value->is_object()) {
    size.refuse(size.wrong, "an object with shortest_edge and longest_edge");
  }
  for (const auto& [key, value] : size.value->members()) {
    if (key != "shortest_edge" && key != "longest_edge") {
      member(size, key).refuse(size.wrong, "shortest_edge and longest_edge only");
    }
  }
  return {integer(member(size, "shortest_edge"), most),
          integer(member(size, "longest_edge"), most)};
}

// What this code computes where a processor has a choice; empty for a key that it does not know.
std::optional<Json> computed_value(Kind kind, std::string_view key,
                                   const ProcessorSettings& settings) {
  using std::string_view_literals::operator""sv;
  constexpr std::array kAlways{"do_convert_rgb"sv, "do_normalize"sv, "do_rescale"sv, "do_resize"sv};
  if (std::ranges::find(kAlways, key) != kAlways.end()) return true;
  if (key == "do_center_crop" || key == "do_pad") return false;
  if (key == "resample") return 3;  // PIL's number of bicubic.
  if (key == "rescale_factor") return 1.0 / 255.0;
  if (key == "image_mean" || key == "image_std") return Json::array({0.5, 0.5, 0.5});
  if (key == "patch_size") return std::uint64_t{settings.patch_size};
  if (key == "merge_size") return std::uint64_t{settings.merge_size};
  if (key == "temporal_patch_size") return std::uint64_t{settings.temporal_patch_size};
  if (key == "data_format") return "channels_first";
  if (kind == Kind::kClip && key == "do_sample_frames") return true;
  return std::nullopt;
}

bool same_value(const Json& found, const Json& expected) {
  if (expected.is_number()) {
    const auto number = found.as_double();
    const double wanted = *expected.as_double();
    return number && std::fabs(*number - wanted) <= 1e-12 * wanted;
  }
  if (!expected.is_array()) return found == expected;
  // A mean that is one number stands for all channels.
  if (found.is_number()) return same_value(found, expected.items().front());
  return found.is_array() && std::ranges::equal(found.items(), expected.items(), same_value);
}

void require_computed(const Setting& setting, const Json& computed, ErrorCode code) {
  if (!same_value(*setting.value, computed)) setting.refuse(code, to_string(computed));
}

// ---- processor_config.json

void require_type(const Setting& section, std::string_view key, std::string_view expected) {
  const Setting type = member(section, key);
  if (!type.given() || !type.value->is_string()) type.refuse(type.wrong, "a string");
  // Releases before transformers 5 name the same processor with a suffix.
  if (type.value->string() != expected && type.value->string() != fmt::format("{}Fast", expected)) {
    type.refuse(ErrorCode::kUnsupported, expected);
  }
}

// Every key is either one of `read`, or has the value that is computed anyway.
void require_computed_keys(Kind kind, const Setting& section, const ProcessorSettings& settings,
                           std::span<const std::string_view> read) {
  for (const auto& [key, value] : section.value->members()) {
    if (value.is_null() || std::ranges::find(read, key) != read.end()) continue;
    const Setting setting = member(section, key);
    const auto computed = computed_value(kind, key, settings);
    if (!computed) setting.refuse(ErrorCode::kUnsupported, "a known key");
    require_computed(setting, *computed, ErrorCode::kUnsupported);
  }
}

void read_image_processor(const Setting& section, ProcessorSettings& settings) {
  constexpr std::string_view kRead[]{"image_processor_type", "size", "default_to_square"};
  require_type(section, "image_processor_type", "Qwen2VLImageProcessor");
  settings.patch_size = integer(member(section, "patch_size"), 64);
  settings.merge_size = integer(member(section, "merge_size"), 8);
  settings.image = pixel_limits(member(section, "size"), kMostPixels);
  require_computed_keys(Kind::kPicture, section, settings, kRead);
}

void read_video_processor(const Setting& section, ProcessorSettings& settings) {
  constexpr std::string_view kRead[]{
      "video_processor_type", "size",       "default_to_square", "fps",
      "min_frames",           "max_frames", "return_metadata"};
  require_type(section, "video_processor_type", "Qwen3VLVideoProcessor");
  settings.video = pixel_limits(member(section, "size"), kMostPixels);
  settings.fps = positive_number(member(section, "fps"));
  settings.max_frames = integer(member(section, "max_frames"), kMostFrames);
  settings.min_frames = integer(member(section, "min_frames"), settings.max_frames);
  require_computed_keys(Kind::kClip, section, settings, kRead);
}

void apply_profile(MediaProfile profile, ProcessorSettings& settings) {
  settings.profile = profile;
  if (profile == MediaProfile::kRelease) return;
  settings.recipe = ResizeRecipe::kPillow;
  settings.pixels_per_picture = kAnePixelsPerPicture;
  settings.pixels_per_frame = kAnePixelsPerFrame;
  settings.max_frames = std::min(settings.max_frames, kAneMaxFrames);
  settings.min_frames = std::min(settings.min_frames, settings.max_frames);
}

// ---- media_kwargs

constexpr std::string_view section_of(Kind kind) {
  return kind == Kind::kPicture ? "images_kwargs" : "videos_kwargs";
}

// A request's kwargs: flat ones reach every processor that knows them, those in `images_kwargs` and
// `videos_kwargs` one kind alone.
class MediaKwargs {
 public:
  MediaKwargs(const Json& kwargs, const ProcessorSettings& settings)
      : all_{&kwargs, "media_kwargs"}, settings_(settings) {
    if (!kwargs.is_object()) all_.refuse(all_.wrong, "an object");
    for (const auto& [key, value] : kwargs.members()) {
      if (key == section_of(Kind::kPicture)) {
        check_section(Kind::kPicture);
      } else if (key == section_of(Kind::kClip)) {
        check_section(Kind::kClip);
      } else if (!knows(Kind::kPicture, key) && !knows(Kind::kClip, key)) {
        refuse_unknown(member(all_, key));
      }
    }
  }

  Setting find(Kind kind, std::string_view key) const {
    const Setting section = member(all_, section_of(kind));
    if (section.value != nullptr && section.value->find(key)) return member(section, key);
    return member(all_, key);
  }

  // Throws for every value that asks for something else than what is computed anyway.
  void require_computed_rest() const {
    for (const Kind kind : {Kind::kPicture, Kind::kClip}) {
      const Setting section = member(all_, section_of(kind));
      if (section.value != nullptr) require_computed_in(kind, section);
      require_computed_in(kind, all_);
    }
  }

 private:
  static bool is_read(Kind kind, std::string_view key) {
    if (key == "size") return true;
    if (kind == Kind::kPicture) return key == "min_pixels" || key == "max_pixels";
    return key == "fps" || key == "num_frames" || key == "min_frames" || key == "max_frames";
  }
  bool knows(Kind kind, std::string_view key) const {
    return is_read(kind, key) || computed_value(kind, key, settings_);
  }
  [[noreturn]] static void refuse_unknown(const Setting& setting) {
    throw_error(setting.wrong, setting.where,
                "unknown, expected size, min_pixels with max_pixels, fps or num_frames");
  }

  void check_section(Kind kind) const {
    const Setting section = object_member(all_, section_of(kind));
    for (const auto& [key, value] : section.value->members()) {
      if (!knows(kind, key)) refuse_unknown(member(section, key));
      if (all_.value->find(key) != nullptr) {
        throw_error(all_.wrong, member(section, key).where,
                    "given twice, expected it in media_kwargs or in {}", section_of(kind));
      }
    }
  }
  void require_computed_in(Kind kind, const Setting& object) const {
    for (const auto& [key, value] : object.value->members()) {
      const auto computed = computed_value(kind, key, settings_);
      if (computed) require_computed(member(object, key), *computed, all_.wrong);
    }
  }

  Setting all_;
  const ProcessorSettings& settings_;
};

// No request gets more memory than the release's own limits allow.
std::size_t most_pixels(const ProcessorSettings& settings) {
  return std::max(settings.image.max_pixels, settings.video.max_pixels);
}

void apply_sizes(const MediaKwargs& kwargs, ProcessorSettings& settings) {
  const std::size_t most = most_pixels(settings);
  const Setting picture_size = kwargs.find(Kind::kPicture, "size");
  const Setting clip_size = kwargs.find(Kind::kClip, "size");
  if (picture_size.value != nullptr) settings.image = pixel_limits(picture_size, most);
  if (clip_size.value != nullptr) settings.video = pixel_limits(clip_size, most);

  // As in the reference, both together win over `size`, and clips do not know them.
  const Setting fewest = kwargs.find(Kind::kPicture, "min_pixels");
  const Setting largest = kwargs.find(Kind::kPicture, "max_pixels");
  if (!fewest.given() && !largest.given()) return;
  // The reference ignores one without the other: surely not what was meant.
  settings.image = {integer(fewest, most), integer(largest, most)};
}

void apply_sampling(const MediaKwargs& kwargs, ProcessorSettings& settings) {
  const Setting fps = kwargs.find(Kind::kClip, "fps");
  const Setting num_frames = kwargs.find(Kind::kClip, "num_frames");
  if (fps.given()) settings.fps = positive_number(fps);
  if (num_frames.given()) {
    // The reference's own rule: an absent fps is the model's, which excludes num_frames too.
    if (fps.value == nullptr || fps.given()) {
      num_frames.refuse(num_frames.wrong, "\"fps\": null beside it, as fps has a default");
    }
    settings.num_frames = integer(num_frames, settings.max_frames);
  }
  // The reference accepts these and goes on with the model's own numbers.
  for (const auto& [key, value] : {std::pair{"min_frames", settings.min_frames},
                                   std::pair{"max_frames", settings.max_frames}}) {
    const Setting setting = kwargs.find(Kind::kClip, key);
    if (setting.value == nullptr || setting.value->as_uint64() == value) continue;
    setting.refuse(setting.wrong, fmt::format("{}, the model's own, as the reference ignores "
                                              "any other (use fps or num_frames)",
                                              value));
  }
}

}  // namespace

ProcessorSettings parse_processor_config(std::string_view json, const std::string& where,
                                         MediaProfile profile) {
  const Json root = parse_json(json, where, {.bytes = kConfigBytes});
  const Setting config{&root, where, ErrorCode::kCorruptData, ": "};
  if (!root.is_object()) config.refuse(config.wrong, "an object");
  require_type(config, "processor_class", "Qwen3VLProcessor");
  ProcessorSettings settings;
  read_image_processor(object_member(config, "image_processor"), settings);
  read_video_processor(object_member(config, "video_processor"), settings);
  apply_profile(profile, settings);
  return settings;
}

ProcessorSettings apply_media_kwargs(ProcessorSettings settings, const Json& kwargs) {
  const MediaKwargs given(kwargs, settings);
  ProcessorSettings changed = settings;
  apply_sizes(given, changed);
  apply_sampling(given, changed);
  given.require_computed_rest();
  return changed;
}

}  // namespace clefkit
