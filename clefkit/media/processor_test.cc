#include "clefkit/media/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// R = x, G = y, B = x + y.
Image ramp(std::size_t height, std::size_t width) {
  Image picture{height, width, {}};
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      for (const std::size_t level : {x, y, x + y}) {
        picture.rgb.push_back(static_cast<std::uint8_t>(level % 256));
      }
    }
  }
  return picture;
}

Image one_colour(std::size_t height, std::size_t width, int level) {
  return {height, width,
          std::vector<std::uint8_t>(height * width * 3, static_cast<std::uint8_t>(level))};
}

// Settings under which clips keep their size.
ProcessorSettings roomy() {
  ProcessorSettings settings;
  settings.video.min_pixels = 1;
  return settings;
}

float level(int value) { return (static_cast<float>(value) - 127.5f) / 127.5f; }

void expect_refused(const std::function<void()>& call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "accepted, expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(ImagePatches, HaveTheReferencesValuesOfARamp) {
  for (const ResizeRecipe recipe : {ResizeRecipe::kPillow, ResizeRecipe::kTorchvision}) {
    ProcessorSettings settings;
    settings.recipe = recipe;
    const Patches patches = image_patches(ramp(256, 256), settings);
    ASSERT_EQ(patches.grid_t, 1u);
    ASSERT_EQ(patches.grid_h, 16u);
    ASSERT_EQ(patches.grid_w, 16u);
    ASSERT_EQ(patches.values.size(), 256u * 1536);
    EXPECT_TRUE(patches.timestamps.empty());
    const auto value = [&](std::size_t patch, std::size_t i) {
      return patches.values[patch * 1536 + i];
    };
    EXPECT_EQ(value(0, 0), -1.0f);
    EXPECT_NEAR(value(0, 15), -0.882353, 1e-6);
    EXPECT_EQ(value(0, 512), -1.0f);
    EXPECT_NEAR(value(1, 0), -0.87451, 1e-6);
    EXPECT_NEAR(value(4, 0), -0.74902, 1e-6);
    EXPECT_NEAR(value(16, 0), 0.003922, 1e-6);
  }
}

TEST(ImagePatches, LieInBlocksOfFour) {
  ProcessorSettings settings;
  settings.image = {1, 1'000'000};
  const Patches patches = image_patches(ramp(64, 96), settings);
  ASSERT_EQ(patches.grid_h, 4u);
  ASSERT_EQ(patches.grid_w, 6u);
  // Row 11 is block 2, its lower right patch: pixels from (16, 80) on.
  const float* const row = patches.values.data() + 11 * 1536;
  for (std::size_t y = 0; y < 16; ++y) {
    for (std::size_t x = 0; x < 16; ++x) {
      const auto top = static_cast<int>(16 + y), left = static_cast<int>(80 + x);
      EXPECT_EQ(row[y * 16 + x], level(left));
      EXPECT_EQ(row[512 + y * 16 + x], level(top));
      EXPECT_EQ(row[1024 + y * 16 + x], level(left + top));
    }
  }
  // Row 12 opens the second row of blocks: pixel (32, 0).
  EXPECT_EQ(patches.values[12 * 1536], level(0));
  EXPECT_EQ(patches.values[12 * 1536 + 512], level(32));
}

TEST(ImagePatches, HoldAStillPictureTwice) {
  const Patches patches = image_patches(ramp(300, 280), {});
  for (std::size_t i = 0; i < patches.values.size(); i += 512) {
    ASSERT_TRUE(std::equal(patches.values.begin() + i, patches.values.begin() + i + 256,
                           patches.values.begin() + i + 256));
  }
}

TEST(ImagePatches, HoldOtherPatchSizes) {
  ProcessorSettings settings;
  settings.patch_size = 4;
  settings.merge_size = 3;
  settings.image = {1, 1'000'000};
  const Patches patches = image_patches(ramp(24, 36), settings);
  EXPECT_EQ(patches.grid_h, 6u);
  EXPECT_EQ(patches.grid_w, 9u);
  ASSERT_EQ(patches.values.size(), 54u * 96);
  // The tenth row opens the second 3×3 block: pixel (0, 12).
  EXPECT_EQ(patches.values[9 * 96], level(12));
}

TEST(ImagePatches, RefuseEmptyAndExtremePictures) {
  expect_refused([] { image_patches(Image{}, {}); }, "0x0 pixels, expected at least 1x1");
  expect_refused([] { image_patches(one_colour(1, 201, 9), {}); }, "at most 200 times the other");
  EXPECT_EQ(image_patches(one_colour(1, 1, 9), {}).grid_h, 16u);
}

TEST(PictureSize, IsNarrowedByTheProfile) {
  ProcessorSettings settings;
  EXPECT_EQ(picture_size({1080, 1920}, settings), (Size{1088, 1920}));
  settings.pixels_per_picture = 262'144;
  EXPECT_EQ(picture_size({1080, 1920}, settings), (Size{384, 672}));
  settings.image = {400'000, 500'000};  // More than the profile allows, both.
  const Size size = picture_size({1000, 1000}, settings);
  EXPECT_EQ(size, (Size{512, 512}));
}

TEST(FrameSize, CountsThePixelsOfAllFrames) {
  ProcessorSettings settings;
  EXPECT_EQ(frame_size(64, {720, 1280}, settings), (Size{448, 832}));
  settings.pixels_per_frame = 65'536;
  EXPECT_EQ(frame_size(64, {720, 1280}, settings), (Size{192, 320}));
  EXPECT_EQ(frame_size(4, {240, 320}, settings), (Size{192, 288}));
}

TEST(VideoPatchBuilder, PairsFramesAndTheirTimes) {
  VideoPatchBuilder builder({0, 0.5, 1, 2}, roomy());
  for (const int frame : {10, 20, 30, 40}) builder.add(one_colour(64, 96, frame));
  const Patches patches = builder.finish();
  EXPECT_EQ(patches.grid_t, 2u);
  EXPECT_EQ(patches.grid_h, 4u);
  EXPECT_EQ(patches.grid_w, 6u);
  ASSERT_EQ(patches.values.size(), 2u * 24 * 1536);
  EXPECT_THAT(patches.timestamps, ElementsAre(0.25, 1.5));
  for (std::size_t i = 0; i < patches.values.size(); ++i) {
    const std::size_t frame = i / (24 * 1536) * 2 + i / 256 % 2;
    ASSERT_EQ(patches.values[i], level(static_cast<int>(frame + 1) * 10)) << i;
  }
}

TEST(VideoPatchBuilder, DoublesAnOddLastFrame) {
  VideoPatchBuilder builder({0, 0.5, 1}, roomy());
  for (const int frame : {10, 20, 30}) builder.add(one_colour(64, 64, frame));
  const Patches patches = builder.finish();
  EXPECT_EQ(patches.grid_t, 2u);
  EXPECT_THAT(patches.timestamps, ElementsAre(0.25, 1));
  EXPECT_THAT(std::vector(patches.values.begin() + 16 * 1536, patches.values.end()),
              ::testing::Each(level(30)));
}

TEST(VideoPatchBuilder, EncodesAFrameAsAPictureIsEncoded) {
  ProcessorSettings settings;
  settings.image = settings.video = {16 * 1024, 64 * 1024};
  VideoPatchBuilder builder({0}, settings);
  builder.add(ramp(100, 150));
  const Patches clip = builder.finish();
  // Two frames share a clip's limits, so a picture of half as many pixels is its equal.
  settings.image = {8 * 1024, 32 * 1024};
  const Patches picture = image_patches(ramp(100, 150), settings);
  EXPECT_EQ(clip.grid_w, picture.grid_w);
  EXPECT_TRUE(clip.values == picture.values);
}

TEST(VideoPatchBuilder, RefusesTheWrongFrames) {
  expect_refused([] { VideoPatchBuilder({}, {}); }, "a clip of 0 frames, expected at least 1");
  VideoPatchBuilder builder({0, 1}, {});
  expect_refused([&] { builder.add(one_colour(2, 500, 0)); }, "at most 200 times the other");
  builder.add(one_colour(64, 64, 0));
  expect_refused([&] { builder.add(one_colour(64, 65, 0)); },
                 "frame 1 of 65x64 pixels, expected 64x64");
  expect_refused([&] { builder.finish(); }, "a clip that ended after 1 of 2 frames");
  builder.add(one_colour(64, 64, 0));
  expect_refused([&] { builder.add(one_colour(64, 64, 0)); },
                 "more frames than the 2 that were chosen");
  EXPECT_EQ(builder.finish().grid_t, 1u);
}

}  // namespace
}  // namespace clefkit
