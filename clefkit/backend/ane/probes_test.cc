#include "clefkit/backend/ane/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "clefkit/backend/ane/fake_device.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/ane/text_programs.h"
#include "clefkit/mil/parser.h"
#include "clefkit/mil/printer.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/programs/program_weights.h"
#include "clefkit/programs/vision_block_program.h"

namespace clefkit::ane {
namespace {

using Outcome = ProbeResult::Outcome;
using testing::HasSubstr;

ProbeResult result_of(Device& device, const std::string& name) {
  const std::vector<Probe> probes = all_probes();
  return run_probe(device, *std::ranges::find(probes, name, &Probe::name));
}

// The simulator and the expected values come from different code.
TEST(Probes, AreRightOnTheSimulator) {
  for (const auto profile : {mil::NumericProfile::kIdeal, mil::NumericProfile::kStrict,
                             mil::NumericProfile::kH15g, mil::NumericProfile::kM5}) {
    SimulatorDevice device(profile);
    for (const Probe& probe : all_probes()) {
      const ProbeResult result = run_probe(device, probe);
      EXPECT_EQ(result.outcome, Outcome::kRight)
          << device.name() << " " << result.name << ": " << result.problem;
    }
  }
}

TEST(Probes, AreRightWhateverTheDevicesPortsLookLike) {
  FakeDevice device({.pads_rows = true,
                     .reverses_ports = true,
                     .adds_output_suffix = true,
                     .checks_surfaces = true});
  for (const Probe& probe : all_probes()) {
    EXPECT_EQ(run_probe(device, probe).outcome, Outcome::kRight) << probe.name;
  }
}

TEST(Probes, TellWhatADeviceRefuses) {
  FakeDevice device({.rejected_operation = "concat"});
  const ProbeResult refused = result_of(device, "split and concat");
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  EXPECT_THAT(refused.problem, HasSubstr("concat"));
  EXPECT_EQ(result_of(device, "softmax").outcome, Outcome::kRight);
}

std::vector<ProbeResult> results_of(Device& device) {
  std::vector<ProbeResult> results;
  for (const Probe& probe : all_probes()) results.push_back(run_probe(device, probe));
  return results;
}

// One for every second way, and a refusal in both ways names the first.
TEST(Probes, FindHowProgramsMustBeSpelled) {
  FakeDevice faultless({});
  EXPECT_EQ(find_spellings(results_of(faultless)).spellings, Spellings{});
  for (const auto& [operation, flag] : {std::pair("concat", &Spellings::concat_by_sum),
                                        std::pair("tile", &Spellings::tile_by_product),
                                        std::pair("reduce_max", &Spellings::maximum_by_halves),
                                        std::pair("softmax", &Spellings::softmax_by_exp),
                                        std::pair("pow", &Spellings::root_by_division)}) {
    FakeDevice device({.rejected_operation = operation});
    Spellings expected;
    expected.*flag = true;
    const FoundSpellings found = find_spellings(results_of(device));
    // Attention's second way has a reduce_max of its own.
    EXPECT_EQ(found.problem, "") << operation;
    EXPECT_EQ(found.spellings, expected) << operation;
  }
  FakeDevice without_exp({.rejected_operation = "exp"});
  EXPECT_THAT(find_spellings(results_of(without_exp)).problem, HasSubstr("exp is refused"));

  // Every second way stands in for one probe, and is tried by one.
  std::set<std::string> firsts, names;
  for (const Probe& probe : all_probes()) {
    if (probe.instead_of.empty()) {
      firsts.insert(probe.name);
    } else {
      EXPECT_TRUE(firsts.contains(probe.instead_of)) << probe.name;
      names.insert(probe.name);
    }
  }
  for (const SecondSpelling& second : kSecondSpellings) {
    EXPECT_TRUE(names.contains(std::string(second.name))) << second.name;
  }
  EXPECT_EQ(names.size(), kSecondSpellings.size());
}

TEST(Probes, TellWhatFails) {
  FakeDevice device({.failing_compile = "softmax"});
  EXPECT_EQ(result_of(device, "softmax").outcome, Outcome::kFailed);
}

// One that computes something else.
TEST(Probes, TellWhatIsWrong) {
  std::vector<Probe> probes = all_probes();
  SimulatorDevice device(mil::NumericProfile::kIdeal);
  for (Probe& probe : probes) {
    float& value = probe.outputs[0].values.back();
    value += 0.05f * std::max(1.0f, std::abs(value));
    const ProbeResult result = run_probe(device, probe);
    EXPECT_EQ(result.outcome, Outcome::kWrong) << probe.name;
    EXPECT_THAT(result.problem, HasSubstr("expected"));
    EXPECT_GT(result.difference, probe.tolerance);
  }
}

TEST(Probes, AreEachDifferent) {
  std::vector<std::string> names;
  for (const Probe& probe : all_probes()) names.push_back(probe.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

void add_operations(const std::string& text, std::set<std::string>& operations) {
  const mil::Program program = mil::parse_program(text, "program");
  for (const mil::Statement& statement : program.functions.at(0).statements) {
    operations.insert(statement.op);
  }
}

TEST(Probes, ContainEveryOperationOfThePrograms) {
  std::set<std::string> probed, used;
  for (const Probe& probe : all_probes()) {
    if (probe.instead_of.empty()) add_operations(probe.mil, probed);
  }
  const Model model = open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro");
  TextPrograms programs(model, {});
  for (std::size_t i = 0; i < programs.plan().size(); ++i) {
    const bool is_attention = programs.plan()[i].kind == ProgramKind::kAttention;
    add_operations(programs.source(i, is_attention ? 1024 : 0).mil, used);
  }
  const std::vector<PlannedProgram> vision = plan_vision_programs(model.config);
  const ProgramWeights weights(model, vision[0]);
  add_operations(mil::to_text(emit_vision_block(model.config.vision, 0, weights.finder(),
                                                {.weight_path = mil::kWeightPath, .patches = 64})),
                 used);
  EXPECT_GT(used.size(), 15U);
  for (const std::string& operation : used) EXPECT_TRUE(probed.contains(operation)) << operation;
}

}  // namespace
}  // namespace clefkit::ane
