#include "clefkit/backend/backend_suite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/synth/presets.h"
#include "clefkit/synth/synth.h"

namespace clefkit {
namespace {

const std::string kGolden = CLEFKIT_SOURCE_DIR "/tests/golden";

BackendUnderTest cpu_on(const std::string& name, std::function<Model()> open) {
  return {.name = name, .open = std::move(open), .make = [](const Model& model) {
            return std::make_unique<cpu::CpuBackend>(model, Precision::kExact);
          }};
}

BackendUnderTest cpu_on_golden(const std::string& checkpoint) {
  return cpu_on(checkpoint,
                [=] { return open_checkpoint(kGolden + "/checkpoints/" + checkpoint); });
}

void replace_number(std::string& json, const std::string& key, const std::string& value) {
  const std::size_t begin = json.find("\"" + key + "\": ");
  ASSERT_NE(begin, std::string::npos) << key;
  const std::size_t number = begin + key.size() + 4;
  json.replace(number, json.find_first_not_of("0123456789", number) - number, value);
}

// The 27B model's ratios of heads: 24 query to 4 key/value, 48 value to 16 key.
Model open_clef_ratios() {
  const std::string directory = ::testing::TempDir() + "/clef_ratios_" + std::to_string(::getpid());
  SynthOptions options;
  options.config = preset_config("tiny");
  options.output = directory;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"num_attention_heads", "24"},
                                                        {"num_key_value_heads", "4"},
                                                        {"linear_num_key_heads", "16"},
                                                        {"linear_num_value_heads", "48"},
                                                        {"linear_key_head_dim", "16"},
                                                        {"linear_value_head_dim", "16"}}) {
    replace_number(options.config.config_json, key, value);
  }
  std::filesystem::remove_all(directory);
  Executor executor(1);
  write_synthetic_checkpoint({executor}, options);
  Model model = open_checkpoint(directory);
  std::filesystem::remove_all(directory);  // The mapping keeps the bytes.
  return model;
}

// One program a layer, so that an observer sees each. What cutting a sequence elsewhere may change
// of a single value in FP16: the delta rule's state is handed over in other places.
BackendUnderTest simulator_on_micro() {
  return {.name = "micro",
          .open = [] { return open_checkpoint(kGolden + "/checkpoints/micro"); },
          .make =
              [](const Model& model) {
                return std::make_unique<ane::ProgramBackend>(
                    model, std::make_unique<ane::SimulatorDevice>(mil::NumericProfile::kIdeal),
                    ane::ProgramForm{.plan = PlanKind::kSplit},
                    std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
              },
          .chunk_tolerance = 0.06,
          .chunks = {67, 127, 128, 129},
          .lengths = {1, 2, 63, 65, 128, 130}};
}

INSTANTIATE_TEST_SUITE_P(Cpu, BackendSuite,
                         ::testing::Values(cpu_on_golden("micro"), cpu_on_golden("tied"),
                                           cpu_on("clef_ratios", open_clef_ratios)),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Simulator, BackendSuite, ::testing::Values(simulator_on_micro()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace clefkit
