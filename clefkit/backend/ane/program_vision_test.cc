#include "clefkit/backend/ane/program_vision.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>

#include "clefkit/backend/ane/golden_model.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"
#include "clefkit/programs/program_weights.h"
#include "clefkit/synth/presets.h"

namespace clefkit::ane {
namespace {

using mil::NumericProfile;

// Pictures and frames, the largest of 48 patches.
const std::vector<VisionSegment> kSegments{{2, 6}, {6, 8}, {2, 2}, {4, 10}, {4, 10}, {6, 2}};

struct Encoded {
  std::map<std::size_t, std::vector<float>> blocks;
  std::vector<float> features;
};

class ProgramVisionTest : public testing::TestWithParam<std::string> {
 protected:
  ProgramVisionTest() {
    for (const VisionSegment& segment : kSegments) patches_ += segment.patches();
    pixels_.resize(patches_ * model_.config.vision.patch_values());
    std::mt19937 random(3);
    std::uniform_real_distribution<float> normed(-1, 1);
    for (float& value : pixels_) value = normed(random);
  }

  template <typename Encode>
  Encoded encoded(const Encode& encode) {
    Encoded result;
    const std::size_t width = model_.config.vision.out_hidden_size;
    result.features.resize(patches_ / 4 * width);
    Executor executor(1);
    encode(ComputeContext{executor},
           VisionBatch{.pixels = {pixels_.data(), patches_, model_.config.vision.patch_values()},
                       .segments = kSegments,
                       .features = {result.features.data(), patches_ / 4, width}},
           VisionObserver{.patch_embeddings = {},
                          .block_output = [&](std::size_t block, MatrixView<const float> rows) {
                            result.blocks[block].assign(rows.data,
                                                        rows.data + rows.rows * rows.columns);
                          }});
    return result;
  }

  Encoded by_programs(NumericProfile profile, std::size_t patches) {
    SimulatorDevice device(profile);
    ProgramSet programs(device);
    ProgramVision vision(model_, programs, 0, {}, patches);
    EXPECT_TRUE(vision.holds(kSegments));
    const Encoded result =
        encoded([&](const auto& context, const auto& batch, const auto& observer) {
          vision.encode(context, batch, observer);
        });
    EXPECT_EQ(programs.loaded(), model_.config.vision.depth);
    return result;
  }

  const Model model_ = open_golden(GetParam());
  std::size_t patches_ = 0;
  std::vector<float> pixels_;
};

INSTANTIATE_TEST_SUITE_P(Golden, ProgramVisionTest, testing::Values("micro", "tied"),
                         [](const auto& test) { return test.param; });

TEST_P(ProgramVisionTest, EncodesAsTheCpuDoes) {
  cpu::CpuBackend cpu(model_, Precision::kExact);
  const Encoded expected =
      encoded([&](const auto& context, const auto& batch, const auto& observer) {
        cpu.encode_vision(context, batch, observer);
      });
  for (const NumericProfile profile :
       {NumericProfile::kIdeal, NumericProfile::kStrict, NumericProfile::kM1, NumericProfile::kM5,
        NumericProfile::kH15g}) {
    const Encoded found = by_programs(profile, 256);
    ASSERT_EQ(found.blocks.size(), expected.blocks.size());
    for (const auto& [block, rows] : expected.blocks) {
      EXPECT_LT(relative_error(found.blocks.at(block), rows), 3e-3)
          << to_string(profile) << " block " << block;
    }
    const double error = relative_error(found.features, expected.features);
    std::printf("%s, %s: features off by %.2e\n", GetParam().c_str(),
                std::string(to_string(profile)).c_str(), error);
    EXPECT_LT(error, 4e-3) << to_string(profile);
  }
}

// Whatever lies beside a picture in its call, and wherever in it.
TEST_P(ProgramVisionTest, ThePackingChangesNoBit) {
  const Encoded together = by_programs(NumericProfile::kStrict, 256);
  const Encoded apart = by_programs(NumericProfile::kStrict, 52);
  EXPECT_EQ(apart.features, together.features);
  EXPECT_EQ(apart.blocks, together.blocks);
}

TEST_P(ProgramVisionTest, HoldsPicturesThatFitIntoACall) {
  SimulatorDevice device(NumericProfile::kIdeal);
  ProgramSet programs(device);
  const ProgramVision vision(model_, programs, 0);
  const std::vector<VisionSegment> largest{{32, 32}, {2, 512}, {32, 32}};
  EXPECT_TRUE(vision.holds(largest));
  const std::vector<VisionSegment> too_large{{2, 2}, {2, 514}};
  EXPECT_FALSE(vision.holds(too_large));
}

TEST_P(ProgramVisionTest, StopsWhenItsCallerDoes) {
  SimulatorDevice device(NumericProfile::kIdeal);
  ProgramSet programs(device);
  ProgramVision vision(model_, programs, 0, {}, 52);
  CancelToken cancel;
  const auto encode = [&](ComputeContext context, const VisionBatch& batch,
                          VisionObserver observer) {
    context.cancel = &cancel;
    observer.patch_embeddings = [&](MatrixView<const float>) { cancel.cancel(); };
    vision.encode(context, batch, observer);
  };
  try {
    encoded(encode);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_EQ(programs.loaded(), 0u);
}

// 127 is what macOS keeps (ane.md 1).
TEST(ProgramVisionPlan, HasTheReleasesProgramsWithinWhatMacOsKeeps) {
  for (const auto& [preset, text, all] :
       {std::tuple("clef-flash", 49u, 76u), std::tuple("clef", 97u, 124u)}) {
    const ConfigTexts texts = preset_config(preset);
    const ModelConfig config = parse_model_config(texts.config_json, texts.head_config_json);
    const std::size_t vision = program_count(plan_vision_programs(config));
    EXPECT_EQ(vision, 27u) << preset;
    EXPECT_EQ(program_count(plan_programs(config, PlanKind::kGrouped)), text) << preset;
    EXPECT_EQ(text + vision, all) << preset;
  }
}

TEST(VisionProgramWeights, NameTheTensorThatFp16CannotHold) {
  Model model = open_golden("micro");
  const std::string name = "model.visual.blocks.1.mlp.linear_fc2.weight";
  auto& tensor = std::get<TensorView>(model.weights.at(name));
  std::vector<std::uint8_t> bytes(tensor.bytes.begin(), tensor.bytes.end());
  bytes[2 * 77] = 0x80;  // BF16 65536.
  bytes[2 * 77 + 1] = 0x47;
  tensor.bytes = bytes;
  const std::vector<PlannedProgram> plan = plan_vision_programs(model.config);
  EXPECT_NO_THROW(ProgramWeights(model, plan[0]));
  try {
    ProgramWeights(model, plan[1]);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    EXPECT_TRUE(std::string(error.what()).starts_with(name + ": element 77 is 65536"))
        << error.what();
  }
}

}  // namespace
}  // namespace clefkit::ane
