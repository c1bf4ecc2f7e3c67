// SHA-256 of the reference's pixel values: transformers 5.10.2 on the pictures and the clip of the
// golden cases that are simple enough to be drawn here.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/file_io.h"
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

void expect_patches(const Patches& patches, std::vector<std::size_t> grid,
                    const std::string& sha256) {
  EXPECT_EQ((std::vector{patches.grid_t, patches.grid_h, patches.grid_w}), grid);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(patches.values.data());
  EXPECT_EQ(sha256_hex({bytes, patches.values.size() * sizeof(float)}), sha256);
}

TEST(GoldenPatches, OfPicturesUnderTheReleasesProfile) {
  const ProcessorSettings release = settings(MediaProfile::kRelease);
  expect_patches(image_patches(draw(100, 150, ramp), release), {1, 14, 20},  // wide.png
                 "3656a5c76b86675c00ea0863a3165b6f19fcfe16fa8fccab8aad10692934fa16");
  expect_patches(image_patches(draw(90, 64, ramp), release), {1, 20, 14},  // alpha.png
                 "ad81dad095e245625e8554fa0fd6892df76e4681f899a8c9dd26b12d853f6c61");
  expect_patches(image_patches(draw(61, 97, edges), release), {1, 14, 22},  // edges.png
                 "98277f0ad41997327ebf77c0d82921a7e7963f0afd654b08b09bb02b67538984");
}

TEST(GoldenPatches, OfAPictureUnderAne) {
  expect_patches(image_patches(draw(700, 900, edges), settings(MediaProfile::kAne)), {1, 28, 36},
                 "2ebc578d40baf66767fe30df83679a0c2bf04ac592a73e8747a793eb41f346e6");
}

TEST(GoldenPatches, OfAClipUnderAne) {
  // clip_big.mkv: 8 frames, 4 a second, rolled by 9 columns a frame.
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
  expect_patches(patches, {2, 12, 18},
                 "d18eb24b267ed4da71b2bb665b2925ed06263ba4260b0a0675afc20b8e380ed9");
  EXPECT_EQ(patches.timestamps, (std::vector{0.25, 1.5}));
}

}  // namespace
}  // namespace clefkit
