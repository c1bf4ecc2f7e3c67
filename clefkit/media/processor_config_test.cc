#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/media/processor.h"

namespace clefkit {
namespace {

using ::testing::HasSubstr;

std::string release_file() {
  return read_file(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro/processor_config.json",
                   1 << 20);
}

ProcessorSettings parse(std::string_view text, MediaProfile profile = MediaProfile::kRelease) {
  return parse_processor_config(text, "processor_config.json", profile);
}

Json json(std::string_view text) { return parse_json(text, "test", {}); }

ProcessorSettings apply(std::string_view kwargs, MediaProfile profile = MediaProfile::kRelease) {
  return apply_media_kwargs(parse(release_file(), profile), json(kwargs));
}

void expect_limits(PixelLimits limits, std::size_t fewest, std::size_t most) {
  EXPECT_EQ(limits.min_pixels, fewest);
  EXPECT_EQ(limits.max_pixels, most);
}

TEST(ProcessorConfig, ReadsTheReleasesOwn) {
  const ProcessorSettings settings = parse(release_file());
  EXPECT_EQ(settings.profile, MediaProfile::kRelease);
  EXPECT_EQ(settings.recipe, ResizeRecipe::kTorchvision);
  EXPECT_EQ(settings.patch_size, 16u);
  EXPECT_EQ(settings.merge_size, 2u);
  expect_limits(settings.image, 65'536, 16'777'216);
  expect_limits(settings.video, 4'096, 25'165'824);
  EXPECT_EQ(settings.fps, 2);
  EXPECT_EQ(settings.min_frames, 4u);
  EXPECT_EQ(settings.max_frames, 768u);
  EXPECT_EQ(settings.num_frames, std::nullopt);
  EXPECT_EQ(settings.pixels_per_picture, std::nullopt);
  EXPECT_EQ(settings.pixels_per_frame, std::nullopt);
}

TEST(ProcessorConfig, IsNarrowedByAne) {
  const ProcessorSettings settings = parse(release_file(), MediaProfile::kAne);
  EXPECT_EQ(settings.profile, MediaProfile::kAne);
  EXPECT_EQ(settings.recipe, ResizeRecipe::kPillow);
  EXPECT_EQ(settings.pixels_per_picture, 262'144u);
  EXPECT_EQ(settings.pixels_per_frame, 65'536u);
  EXPECT_EQ(settings.max_frames, 64u);
}

struct Change {
  std::string_view from, to;
  ErrorCode code;
  std::string_view message;
};

TEST(ProcessorConfig, RefusesWhatItDoesNotCompute) {
  using enum ErrorCode;
  const Change changes[]{
      {"\"do_rescale\": true", "\"do_rescale\": false", kUnsupported,
       "processor_config.json: image_processor.do_rescale: false, expected true"},
      {"\"resample\": 3", "\"resample\": 2", kUnsupported,
       "image_processor.resample: 2, expected 3"},
      {"0.00392156862745098", "0.0039", kUnsupported, "rescale_factor: 0.0039, expected 0.0039215"},
      {"0.5,", "0.48,", kUnsupported, "image_mean: [0.48,0.5,0.5], expected [0.5,0.5,0.5]"},
      {"0.5,", "", kUnsupported, "image_mean: [0.5,0.5], expected"},
      {"Qwen2VLImageProcessor", "CLIPImageProcessor", kUnsupported,
       "image_processor.image_processor_type: \"CLIPImageProcessor\", expected Qwen2VLImageProc"},
      {"Qwen3VLVideoProcessor", "Qwen2VLVideoProcessor", kUnsupported, "video_processor_type"},
      {"Qwen3VLProcessor", "LlavaProcessor", kUnsupported, "processor_class"},
      {"\"temporal_patch_size\": 2", "\"temporal_patch_size\": 1", kUnsupported,
       "image_processor.temporal_patch_size: 1, expected 2"},
      // The video processor's is then another.
      {"\"patch_size\": 16", "\"patch_size\": 14", kUnsupported,
       "video_processor.patch_size: 16, expected 14"},
      {"\"do_sample_frames\": true", "\"do_sample_frames\": 1", kUnsupported,
       "video_processor.do_sample_frames: 1, expected true"},
      {"\"resample\": 3", "\"resample\": 3, \"do_sparkle\": 1", kUnsupported,
       "image_processor.do_sparkle: 1, expected a known key"},
      {"\"patch_size\": 16", "\"patch_size\": 0", kCorruptData,
       "patch_size: 0, expected an integer"},
      {"\"merge_size\": 2", "\"merge_size\": \"2\"", kCorruptData, "merge_size: \"2\", expected"},
      {"\"merge_size\": 2", "\"merge_size\": 2.0", kCorruptData, "merge_size: 2.0, expected"},
      {"\"longest_edge\": 16777216", "\"longest_edge\": -1", kCorruptData,
       "image_processor.size.longest_edge: -1, expected an integer from 1 to"},
      {"\"longest_edge\": 16777216,", "", kCorruptData, "size.longest_edge: absent, expected"},
      {"\"longest_edge\": 16777216", "\"longest_edge\": 1e999", kCorruptData, "longest_edge"},
      {"\"longest_edge\": 16777216", "\"height\": 16777216", kCorruptData,
       "size.height: 16777216, expected shortest_edge and longest_edge only"},
      {"\"fps\": 2", "\"fps\": 0", kCorruptData, "fps: 0, expected a number above 0"},
      {"\"fps\": 2", "\"fps\": 1e999", kCorruptData, "fps: 1e999, expected a number above 0"},
      {"\"fps\": 2", "\"fps\": null", kCorruptData, "fps: null, expected a number above 0"},
      {"\"min_frames\": 4", "\"min_frames\": 769", kCorruptData,
       "min_frames: 769, expected an integer from 1 to 768"},
      {"\"video_processor\": {", "\"film_processor\": {", kCorruptData,
       "processor_config.json: video_processor: absent, expected an object"},
      {"\"processor_class\": \"Qwen3VLProcessor\"", "\"processor_class\": 3", kCorruptData,
       "processor_class: 3, expected a string"},
  };
  const std::string file = release_file();
  for (const Change& change : changes) {
    std::string text = file;
    const std::size_t at = text.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    text.replace(at, change.from.size(), change.to);
    try {
      parse(text);
      ADD_FAILURE() << change.to << " was accepted, expected: " << change.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), change.code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(change.message));
    }
  }
}

TEST(ProcessorConfig, AcceptsWhatChangesNothing) {
  std::string text = release_file();
  const std::string_view added =
      "\"crop_size\": null, \"data_format\": \"channels_first\", \"default_to_square\": false, "
      "\"do_center_crop\": false, \"resample\"";
  text.replace(text.find("\"resample\""), 10, added);
  const std::string name = "Qwen2VLImageProcessor";
  text.replace(text.find(name), name.size(), name + "Fast");
  EXPECT_EQ(parse(text).image.max_pixels, 16'777'216u);
}

TEST(ProcessorConfig, RefusesBrokenJson) {
  const std::string file = release_file();
  for (const std::string& text : {std::string(), std::string("[]"), std::string("null"),
                                  file.substr(0, file.size() / 2), std::string(1000, '[')}) {
    try {
      parse(text);
      ADD_FAILURE() << text.substr(0, 20) << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
      EXPECT_THAT(error.what(), HasSubstr("processor_config.json"));
    }
  }
}

TEST(MediaKwargs, SizeIsForPicturesAndClips) {
  const ProcessorSettings settings =
      apply(R"({"size":{"shortest_edge":4096,"longest_edge":40000}})");
  expect_limits(settings.image, 4096, 40'000);
  expect_limits(settings.video, 4096, 40'000);
}

TEST(MediaKwargs, MinAndMaxPixelsAreForPicturesAndWinOverSize) {
  const ProcessorSettings settings = apply(
      R"({"min_pixels":1024,"max_pixels":90000,"size":{"shortest_edge":4096,"longest_edge":40000}})");
  expect_limits(settings.image, 1024, 90'000);
  expect_limits(settings.video, 4096, 40'000);
}

TEST(MediaKwargs, AKindMayHaveItsOwn) {
  const ProcessorSettings settings = apply(
      R"({"images_kwargs":{"size":{"shortest_edge":1,"longest_edge":2}},
          "videos_kwargs":{"fps":4,"size":{"shortest_edge":3,"longest_edge":4}}})");
  expect_limits(settings.image, 1, 2);
  expect_limits(settings.video, 3, 4);
  EXPECT_EQ(settings.fps, 4);
}

TEST(MediaKwargs, FpsOrNumFramesChooseFrames) {
  EXPECT_EQ(apply(R"({"fps":0.5})").fps, 0.5);
  EXPECT_EQ(apply(R"({"fps":null})").fps, 2);
  EXPECT_EQ(apply(R"({"fps":null,"num_frames":8})").num_frames, 8u);
  EXPECT_EQ(apply(R"({"num_frames":null})").num_frames, std::nullopt);
}

TEST(MediaKwargs, KeepTheProfilesOwnLimits) {
  const ProcessorSettings settings =
      apply(R"({"size":{"shortest_edge":65536,"longest_edge":16777216}})", MediaProfile::kAne);
  EXPECT_EQ(picture_size({1080, 1920}, settings), (Size{384, 672}));
}

TEST(MediaKwargs, AcceptWhatChangesNothing) {
  const ProcessorSettings settings = apply(
      R"({"do_resize":true,"do_sample_frames":true,"resample":3,"rescale_factor":0.00392156862745098,
          "image_mean":0.5,"image_std":[0.5,0.5,0.5],"patch_size":16,"merge_size":2,
          "temporal_patch_size":2,"min_frames":4,"max_frames":768,"min_pixels":null})");
  expect_limits(settings.image, 65'536, 16'777'216);
  EXPECT_EQ(apply("{}").max_frames, 768u);
}

TEST(MediaKwargs, RefusesTheRest) {
  const std::pair<std::string_view, std::string_view> cases[]{
      {"[]", "media_kwargs: [], expected an object"},
      {R"({"size":null})", "media_kwargs.size: null, expected an object with shortest_edge"},
      {R"({"size":448})", "media_kwargs.size: 448, expected an object"},
      {R"({"size":{"shortest_edge":1}})", "size.longest_edge: absent, expected an integer"},
      {R"({"size":{"height":448,"width":448}})", "size.height: 448, expected shortest_edge"},
      {R"({"size":{"shortest_edge":0,"longest_edge":9}})", "size.shortest_edge: 0, expected"},
      {R"({"size":{"shortest_edge":true,"longest_edge":9}})", "shortest_edge: true, expected"},
      {R"({"size":{"shortest_edge":1,"longest_edge":25165825}})",
       "longest_edge: 25165825, expected an integer from 1 to 25165824"},
      {R"({"size":{"shortest_edge":1,"longest_edge":1e30}})", "longest_edge: 1e30, expected"},
      {R"({"min_pixels":5})", "media_kwargs.max_pixels: absent, expected an integer"},
      {R"({"max_pixels":5})", "media_kwargs.min_pixels: absent, expected an integer"},
      {R"({"min_pixels":1.5,"max_pixels":5})", "min_pixels: 1.5, expected an integer"},
      {R"({"fps":0})", "media_kwargs.fps: 0, expected a number above 0"},
      {R"({"fps":"2"})", "media_kwargs.fps: \"2\", expected a number above 0"},
      {R"({"fps":1e999})", "media_kwargs.fps: 1e999, expected a number above 0"},
      {R"({"num_frames":8})", "num_frames: 8, expected \"fps\": null beside it"},
      {R"({"num_frames":8,"fps":2})", "num_frames: 8, expected \"fps\": null beside it"},
      {R"({"num_frames":0,"fps":null})", "num_frames: 0, expected an integer from 1 to 768"},
      {R"({"num_frames":769,"fps":null})", "num_frames: 769, expected an integer from 1 to 768"},
      {R"({"max_frames":16})", "max_frames: 16, expected 768, the model's own"},
      {R"({"min_frames":null})", "min_frames: null, expected 4, the model's own"},
      {R"({"do_resize":false})", "media_kwargs.do_resize: false, expected true"},
      {R"({"do_sample_frames":false})", "media_kwargs.do_sample_frames: false, expected true"},
      {R"({"resample":2})", "media_kwargs.resample: 2, expected 3"},
      {R"({"patch_size":14})", "media_kwargs.patch_size: 14, expected 16"},
      {R"({"cheese":1})", "media_kwargs.cheese: unknown, expected size, min_pixels with"},
      {R"({"return_tensors":"pt"})", "media_kwargs.return_tensors: unknown"},
      {R"({"images_kwargs":3})", "media_kwargs.images_kwargs: 3, expected an object"},
      {R"({"images_kwargs":{"fps":3}})", "media_kwargs.images_kwargs.fps: unknown"},
      {R"({"videos_kwargs":{"min_pixels":3}})", "media_kwargs.videos_kwargs.min_pixels: unknown"},
      {R"({"videos_kwargs":{"do_resize":false}})", "videos_kwargs.do_resize: false, expected true"},
      {R"({"fps":1,"videos_kwargs":{"fps":3}})", "media_kwargs.videos_kwargs.fps: given twice"},
  };
  for (const auto& [kwargs, message] : cases) {
    try {
      apply(kwargs);
      ADD_FAILURE() << kwargs << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
  EXPECT_THROW(apply(R"({"num_frames":65,"fps":null})", MediaProfile::kAne), Error);
}

}  // namespace
}  // namespace clefkit
