#include "clefkit/backend/cpu/vision_encoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/error.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit::cpu {
namespace {

const std::string kGolden = CLEFKIT_SOURCE_DIR "/tests/golden";

// A reference run's pictures and clips (tests/golden/cases/README.md), one after the other.
struct GoldenMedia {
  explicit GoldenMedia(const std::string& name)
      : file(kGolden + "/cases/micro/" + name + ".safetensors") {
    for (std::size_t item = 0;; ++item) {
      const TensorView* grid = file.find(fmt::format("vision.{}.grid_thw", item));
      if (grid == nullptr) break;
      std::array<std::size_t, 3> sizes;
      for (std::size_t i = 0; i < 3; ++i) {
        sizes[i] = static_cast<std::size_t>(load_le<std::int64_t>(grid->bytes.data() + 8 * i));
      }
      segments.insert(segments.end(), sizes[0], VisionSegment{sizes[1], sizes[2]});
      const auto values = tensor(item, "pixel_values");
      pixels.insert(pixels.end(), values.begin(), values.end());
      ++items;
    }
  }

  std::span<const float> tensor(std::size_t item, const std::string& name) const {
    const TensorView* found = file.find(fmt::format("vision.{}.{}", item, name));
    if (found == nullptr) throw std::runtime_error(name);
    return found->float_values();
  }
  // The same tensor of all items.
  std::vector<float> tensors(const std::string& name) const {
    std::vector<float> all;
    for (std::size_t item = 0; item < items; ++item) {
      const auto values = tensor(item, name);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  SafetensorsFile file;
  std::vector<VisionSegment> segments;
  std::vector<float> pixels;
  std::size_t items = 0;
};

void expect_close(std::span<const float> found, std::span<const float> expected,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double square_sum = 0, largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    square_sum += double{expected[i]} * expected[i];
    const double difference = std::abs(double{found[i]} - expected[i]);
    if (!(difference <= largest)) largest = difference;  // A NaN is kept.
  }
  EXPECT_LE(largest / std::sqrt(square_sum / static_cast<double>(found.size())), 2e-4) << what;
}

class VisionEncoderTest : public ::testing::Test {
 protected:
  std::vector<float> features(std::span<const float> pixels,
                              std::span<const VisionSegment> segments,
                              const VisionObserver& observer = {}) {
    const VisionConfig& config = model_.config.vision;
    std::size_t patches = 0;
    for (const VisionSegment& segment : segments) patches += segment.patches();
    EXPECT_EQ(pixels.size(), patches * config.patch_values());
    std::vector<float> out(patches / 4 * config.out_hidden_size);
    encoder_.encode({executor_},
                    {.pixels = {pixels.data(), patches, config.patch_values()},
                     .segments = segments,
                     .features = {out.data(), patches / 4, config.out_hidden_size}},
                    observer, workspace_);
    return out;
  }

  Model model_ = open_checkpoint(kGolden + "/checkpoints/micro");
  VisionEncoder encoder_{model_};
  Executor executor_{2};
  Workspace workspace_;
};

TEST_F(VisionEncoderTest, AgreesWithTheReferenceStepByStep) {
  for (const char* name : {"mixed", "video_odd"}) {
    SCOPED_TRACE(name);
    const GoldenMedia media(name);
    ASSERT_GT(media.items, 0u);
    std::size_t blocks = 0;
    const auto copy = [](MatrixView<const float> rows) {
      return std::vector<float>(rows.data, rows.data + rows.rows * rows.columns);
    };
    const auto found = features(
        media.pixels, media.segments,
        {.patch_embeddings =
             [&](MatrixView<const float> rows) {
               expect_close(copy(rows), media.tensors("patch_embeddings"), "patch_embeddings");
             },
         .block_output =
             [&](std::size_t block, MatrixView<const float> rows) {
               ++blocks;
               expect_close(copy(rows), media.tensors(fmt::format("blocks.{}.output", block)),
                            fmt::format("block {}", block));
             }});
    expect_close(found, media.tensors("features"), "features");
    EXPECT_EQ(blocks, model_.config.vision.depth);
  }
}

TEST_F(VisionEncoderTest, SegmentsGiveTheSameBitsAloneAndTogether) {
  const GoldenMedia media("mixed");
  const std::vector<float> together = features(media.pixels, media.segments);
  const std::size_t patch = model_.config.vision.patch_values();
  const std::size_t out_values = model_.config.vision.out_hidden_size;
  std::size_t first = 0;
  for (const VisionSegment& segment : media.segments) {
    const auto alone =
        features(std::span(media.pixels).subspan(first * patch, segment.patches() * patch),
                 std::array{segment});
    const auto part = std::span(together).subspan(first / 4 * out_values, alone.size());
    EXPECT_TRUE(std::ranges::equal(alone, part)) << "segment at patch " << first;
    first += segment.patches();
  }
}

TEST_F(VisionEncoderTest, OneThreadAndThreeGiveTheSameBits) {
  const GoldenMedia media("mixed");
  const std::vector<float> two = features(media.pixels, media.segments);
  Executor one(1), three(3);
  for (Executor* executor : {&one, &three}) {
    std::vector<float> out(two.size());
    const VisionConfig& config = model_.config.vision;
    encoder_.encode(
        {*executor},
        {.pixels = {media.pixels.data(), media.pixels.size() / config.patch_values(),
                    config.patch_values()},
         .segments = media.segments,
         .features = {out.data(), out.size() / config.out_hidden_size, config.out_hidden_size}},
        {}, workspace_);
    EXPECT_EQ(out, two);
  }
}

TEST_F(VisionEncoderTest, ReadsPicturesOfOneTokenAndOfMoreRowsThanAnMlpSlice) {
  const std::size_t patch = model_.config.vision.patch_values();
  for (const VisionSegment segment : {VisionSegment{2, 2}, VisionSegment{2, 1026}}) {
    std::vector<float> pixels(segment.patches() * patch, 0.25f);
    const std::vector<float> found = features(pixels, std::array{segment});
    EXPECT_TRUE(std::ranges::all_of(found, [](float value) { return std::isfinite(value); }));
  }
}

TEST_F(VisionEncoderTest, SaysWhereNumbersOverflow) {
  const std::array segment{VisionSegment{2, 2}};
  std::vector<float> pixels(4 * model_.config.vision.patch_values(), 3e38f);
  try {
    features(pixels, segment);
    FAIL() << "answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    EXPECT_EQ(error.where(), "vision.patch_embeddings");
  }
}

}  // namespace
}  // namespace clefkit::cpu
