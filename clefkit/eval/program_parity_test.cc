#include "clefkit/eval/program_parity.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/convert/convert.h"

namespace clefkit {
namespace {

// A golden checkpoint, and the bundle made of it with a program for each layer.
class ProgramParityTest : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  ProgramParityTest() {
    const auto& [name, is_bundle] = GetParam();
    std::filesystem::path path =
        std::filesystem::path(CLEFKIT_SOURCE_DIR) / "tests/golden/checkpoints" / name;
    if (is_bundle) {
      std::string pattern =
          (std::filesystem::temp_directory_path() / "clefkit-parity-XXXXXX").string();
      folder_ = ::mkdtemp(pattern.data());
      ConvertOptions options;
      options.min_weights = 1024;
      options.plan = PlanKind::kSplit;
      Executor executor(1);
      convert(path, folder_ / "bundle", options, {executor});
      path = folder_ / "bundle";
    }
    model_ = open_model(path);
  }
  ~ProgramParityTest() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Model model_{};

 private:
  std::filesystem::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Golden, ProgramParityTest,
                         testing::Combine(testing::Values("micro", "tied"), testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param) ? "Bundle" : "Checkpoint");
                         });

void expect_small(const ProgramErrors& errors) {
  for (const auto& [output, error] : errors) EXPECT_LT(error, kProgramTolerance) << output;
}

TEST_P(ProgramParityTest, EachTextLayerComputesWhatTheCpuDoes) {
  expect_small(text_program_errors(
      model_, std::make_unique<ane::SimulatorDevice>(mil::NumericProfile::kIdeal)));
}

TEST_P(ProgramParityTest, TheVisionBlocksComputeWhatTheCpuDoes) {
  expect_small(vision_program_errors(
      model_, std::make_unique<ane::SimulatorDevice>(mil::NumericProfile::kIdeal)));
}

}  // namespace
}  // namespace clefkit
