#include "clefkit/media/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"

namespace clefkit {
namespace {

constexpr ResizeRecipe kRecipes[]{ResizeRecipe::kPillow, ResizeRecipe::kTorchvision};

// The pictures of a trusted safetensors file: media/ may not use safetensors/.
std::map<std::string, Image> golden_pictures() {
  const std::string file =
      read_file(CLEFKIT_SOURCE_DIR "/tests/golden/resize/vectors.safetensors", 1 << 20);
  const Bytes bytes = as_bytes(file);
  const auto header_bytes = static_cast<std::size_t>(load_le<std::uint64_t>(bytes.data()));
  const Json header = parse_json(as_text(bytes.subspan(8, header_bytes)), "header", {});
  std::map<std::string, Image> pictures;
  for (const auto& [name, entry] : header.members()) {
    const Json::Array& shape = entry.find("shape")->items();
    const std::size_t begin =
        8 + header_bytes + *entry.find("data_offsets")->items()[0].as_uint64();
    Image picture{*shape[0].as_uint64(), *shape[1].as_uint64(), {}};
    const Bytes rgb = bytes.subspan(begin, picture.height * picture.width * 3);
    picture.rgb.resize(rgb.size());
    std::memcpy(picture.rgb.data(), rgb.data(), rgb.size());
    pictures[name] = std::move(picture);
  }
  return pictures;
}

Image random_picture(std::size_t height, std::size_t width, unsigned seed) {
  std::mt19937 random(seed);
  Image picture{height, width, std::vector<std::uint8_t>(height * width * 3)};
  for (std::uint8_t& value : picture.rgb) value = static_cast<std::uint8_t>(random());
  return picture;
}

double kernel(double x) {
  x = std::fabs(x);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

// One axis in doubles, straight from the definition; `line` holds one channel.
std::vector<double> resize_line(const std::vector<double>& line, std::size_t size) {
  if (size == line.size()) return line;
  const double scale = static_cast<double>(line.size()) / static_cast<double>(size);
  const double stretch = std::max(1.0, scale);
  std::vector<double> out(size);
  for (std::size_t x = 0; x < size; ++x) {
    const double centre = (static_cast<double>(x) + 0.5) * scale;
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const double distance = static_cast<double>(i) + 0.5 - centre;
      // The libraries cut the support at whole pixels, not where the kernel ends.
      const double first = std::trunc(std::max(0.0, centre - 2 * stretch + 0.5));
      const double last = std::trunc(centre + 2 * stretch + 0.5);
      if (static_cast<double>(i) < first || static_cast<double>(i) >= last) continue;
      sum += kernel(distance / stretch) * line[i];
      weights += kernel(distance / stretch);
    }
    out[x] = std::clamp(std::round(sum / weights), 0.0, 255.0);
  }
  return out;
}

Image plain_resize(const Image& picture, std::size_t height, std::size_t width) {
  Image wide{picture.height, width, std::vector<std::uint8_t>(picture.height * width * 3)};
  for (std::size_t y = 0; y < picture.height; ++y) {
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<double> line;
      for (std::size_t x = 0; x < picture.width; ++x) {
        line.push_back(picture.rgb[(y * picture.width + x) * 3 + c]);
      }
      const std::vector<double> out = resize_line(line, width);
      for (std::size_t x = 0; x < width; ++x) {
        wide.rgb[(y * width + x) * 3 + c] = static_cast<std::uint8_t>(out[x]);
      }
    }
  }
  Image result{height, width, std::vector<std::uint8_t>(height * width * 3)};
  for (std::size_t i = 0; i < width * 3; ++i) {
    std::vector<double> line;
    for (std::size_t y = 0; y < wide.height; ++y) line.push_back(wide.rgb[y * width * 3 + i]);
    const std::vector<double> out = resize_line(line, height);
    for (std::size_t y = 0; y < height; ++y) {
      result.rgb[y * width * 3 + i] = static_cast<std::uint8_t>(out[y]);
    }
  }
  return result;
}

TEST(Resize, GivesTheBytesOfBothLibraries) {
  const std::map<std::string, Image> pictures = golden_pictures();
  int compared = 0;
  for (const auto& [name, expected] : pictures) {
    if (name.ends_with(".input")) continue;
    const Image& input = pictures.at(name.substr(0, name.find('.')) + ".input");
    const ResizeRecipe recipe =
        name.ends_with(".pillow") ? ResizeRecipe::kPillow : ResizeRecipe::kTorchvision;
    const Image out = resize_bicubic(input, expected.height, expected.width, recipe);
    EXPECT_EQ(out.height, expected.height);
    EXPECT_EQ(out.width, expected.width);
    EXPECT_TRUE(out.rgb == expected.rgb) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 16);
}

TEST(Resize, KeepsAPictureOfTheSameSize) {
  const Image picture = random_picture(23, 31, 1);
  for (const ResizeRecipe recipe : kRecipes) {
    EXPECT_EQ(resize_bicubic(picture, 23, 31, recipe).rgb, picture.rgb);
  }
}

TEST(Resize, KeepsOneColour) {
  for (const auto& [height, width] : {std::pair{1, 1}, {7, 300}, {64, 64}, {200, 3}}) {
    for (const int level : {0, 1, 127, 254, 255}) {
      const auto pixels = static_cast<std::size_t>(height * width);
      const Image picture{static_cast<std::size_t>(height), static_cast<std::size_t>(width),
                          std::vector<std::uint8_t>(pixels * 3, static_cast<std::uint8_t>(level))};
      for (const ResizeRecipe recipe : kRecipes) {
        EXPECT_THAT(resize_bicubic(picture, 33, 65, recipe).rgb, ::testing::Each(level));
      }
    }
  }
}

TEST(Resize, StaysWithinALevelAPassOfPlainArithmetic) {
  struct Case {
    std::size_t height, width, to_height, to_width;
  };
  for (const Case& c :
       {Case{1, 1, 5, 3}, Case{2, 3, 1, 1}, Case{5, 7, 7, 5}, Case{13, 1, 3, 9},
        Case{17, 19, 64, 33}, Case{63, 65, 31, 67}, Case{101, 37, 11, 37}, Case{29, 127, 29, 13},
        Case{31, 5, 31, 64}, Case{57, 33, 8, 33}, Case{3, 200, 32, 96}}) {
    const Image picture = random_picture(c.height, c.width, 7);
    const Image plain = plain_resize(picture, c.to_height, c.to_width);
    for (const ResizeRecipe recipe : kRecipes) {
      const Image out = resize_bicubic(picture, c.to_height, c.to_width, recipe);
      ASSERT_EQ(out.rgb.size(), plain.rgb.size());
      int worst = 0;
      for (std::size_t i = 0; i < out.rgb.size(); ++i) {
        worst = std::max(worst, std::abs(out.rgb[i] - plain.rgb[i]));
      }
      // A level a pass: what the first is off by, the second carries on.
      const int passes = (c.width != c.to_width) + (c.height != c.to_height);
      EXPECT_LE(worst, passes) << c.height << "x" << c.width << " to " << c.to_height << "x"
                               << c.to_width;
    }
  }
}

constexpr PixelLimits kReleasePicture{65'536, 16'777'216};
constexpr PixelLimits kReleaseClip{4'096, 25'165'824};

TEST(SmartResize, GivesThePublishedSizes) {
  struct Case {
    Size from, to;
  };
  for (const Case& c : {Case{{16, 16}, {256, 256}}, Case{{31, 33}, {256, 288}},
                        Case{{100, 150}, {224, 320}}, Case{{720, 1280}, {704, 1280}},
                        Case{{1080, 1920}, {1088, 1920}}, Case{{4000, 3000}, {4000, 3008}},
                        Case{{8000, 6000}, {4704, 3520}}, Case{{37, 1000}, {64, 1344}},
                        Case{{10, 900}, {32, 2432}}, Case{{5000, 5000}, {4096, 4096}}}) {
    EXPECT_EQ(smart_resize(c.from, 32, kReleasePicture), c.to)
        << c.from.height << "x" << c.from.width;
  }
  EXPECT_EQ(smart_resize({1080, 1920}, 32, {65'536, 262'144}), (Size{384, 672}));
}

TEST(SmartResize, RoundsHalfToTheEvenMultiple) {
  EXPECT_EQ(smart_resize({16 * 17, 16 * 19}, 32, {1, 1'000'000}), (Size{256, 320}));
}

TEST(SmartResize, GivesThePublishedSizesOfClips) {
  EXPECT_EQ(smart_resize_video(2, {16, 16}, 32, kReleaseClip), (Size{64, 64}));
  EXPECT_EQ(smart_resize_video(4, {2160, 3840}, 32, kReleaseClip), (Size{1856, 3328}));
  EXPECT_EQ(smart_resize_video(7, {8000, 6000}, 32, kReleaseClip), (Size{2176, 1632}));
  EXPECT_EQ(smart_resize_video(64, {720, 1280}, 32, kReleaseClip), (Size{448, 832}));
  EXPECT_EQ(smart_resize_video(768, {10, 900}, 32, kReleaseClip), (Size{32, 1696}));
}

TEST(SmartResize, RefusesEmptyAndExtremePictures) {
  EXPECT_EQ(smart_resize({10, 2000}, 32, kReleasePicture).height, 32u);  // 200 is allowed.
  for (const Size size : {Size{0, 0}, Size{0, 5}, Size{5, 0}, Size{10, 2001}, Size{201, 1}}) {
    for (const bool clip : {false, true}) {
      try {
        clip ? smart_resize_video(4, size, 32, kReleaseClip)
             : smart_resize(size, 32, kReleasePicture);
        ADD_FAILURE() << size.height << "x" << size.width << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      }
    }
  }
}

}  // namespace
}  // namespace clefkit
