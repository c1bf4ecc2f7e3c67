// tests/golden/media/patches.json: grids and SHA-256 of the float32 pixel values that transformers
// 5.10.2 makes of each picture and clip. Those that are simple enough are drawn here.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/base/sha256.h"
#include "clefkit/media/processor.h"

namespace clefkit {
namespace {

using Levels = std::array<std::size_t, 3>;

Image draw(std::size_t height, std::size_t width,
           const std::function<Levels(std::size_t y, std::size_t x)>& at) {
  Image picture{height, width, {}};
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      for (const std::size_t level : at(y, x)) {
        picture.rgb.push_back(static_cast<std::uint8_t>(level % 256));
      }
    }
  }
  return picture;
}

Levels ramp(std::size_t y, std::size_t x) { return {x, y, x + y}; }

// Hard edges every 128 pixels, upright, level and oblique.
Levels edges(std::size_t y, std::size_t x) {
  return {x / 128 % 2 * 255, y / 128 % 2 * 255, (x + y) / 128 % 2 * 255};
}

ProcessorSettings settings(MediaProfile profile) {
  const std::string path =
      CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro/processor_config.json";
  return parse_processor_config(read_file(path, 1 << 20), path, profile);
}

Json golden_entry(std::string_view media) {
  const std::string path = CLEFKIT_SOURCE_DIR "/tests/golden/media/patches.json";
  const Json entries = parse_json(read_file(path, 1 << 20), path, {});
  for (const Json& entry : entries.items()) {
    if (entry.find("media")->string() == media) return entry;
  }
  throw_error(ErrorCode::kNotFound, path, "no entry for {}", media);
}

void expect_golden(const Patches& patches, std::string_view media) {
  const Json golden = golden_entry(media);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(patches.values.data());
  EXPECT_EQ(sha256_hex({bytes, patches.values.size() * sizeof(float)}),
            golden.find("sha256")->string())
      << media;
  const std::size_t grid[]{patches.grid_t, patches.grid_h, patches.grid_w};
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(golden.find("grid")->items()[i].as_uint64(), grid[i]);
}

TEST(GoldenPatches, OfPicturesUnderTheReleasesProfile) {
  const ProcessorSettings release = settings(MediaProfile::kRelease);
  expect_golden(image_patches(draw(100, 150, ramp), release), "wide.png");
  expect_golden(image_patches(draw(90, 64, ramp), release), "alpha.png");
  expect_golden(image_patches(draw(61, 97, edges), release), "edges.png");
}

TEST(GoldenPatches, OfAPictureUnderAne) {
  expect_golden(image_patches(draw(700, 900, edges), settings(MediaProfile::kAne)),
                "edges_big.png");
}

TEST(GoldenPatches, OfAClipUnderAne) {
  // 8 frames, 4 a second, rolled by 9 columns a frame.
  const ProcessorSettings ane = settings(MediaProfile::kAne);
  const std::vector<double> seconds{0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75};
  const ChosenFrames chosen = sample_frames(seconds, ane);
  VideoPatchBuilder builder(chosen.seconds, ane);
  for (const std::size_t frame : chosen.indices) {
    builder.add(draw(240, 320, [&](std::size_t y, std::size_t x) {
      return edges(y, (x + 320 - 9 * frame) % 320);
    }));
  }
  const Patches patches = builder.finish();
  expect_golden(patches, "clip_big.mkv");
  EXPECT_EQ(patches.timestamps, (std::vector{0.25, 1.5}));
}

}  // namespace
}  // namespace clefkit
