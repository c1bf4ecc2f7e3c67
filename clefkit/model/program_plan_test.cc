#include "clefkit/model/program_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "clefkit/model/tensor_plan.h"

namespace clefkit {
namespace {

using testing::ElementsAre;

// `pattern`: one letter a layer, l(inear) or f(ull).
ModelConfig config_of(std::string_view pattern) {
  ModelConfig config;
  config.text.num_hidden_layers = pattern.size();
  for (const char c : pattern) {
    config.text.layer_types.push_back(c == 'f' ? LayerType::kFullAttention
                                               : LayerType::kLinearAttention);
  }
  return config;
}

std::vector<std::string> names_of(const std::vector<PlannedProgram>& programs) {
  std::vector<std::string> names;
  for (const PlannedProgram& program : programs) names.push_back(program.name);
  return names;
}

std::string repeated(std::string_view pattern, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += pattern;
  return out;
}

// The counts are the specification's: 8 runs + tail + 8·5, and 16 + 1 + 16·5.
TEST(ProgramPlan, CountsTheReleasesPrograms) {
  EXPECT_EQ(program_count(plan_programs(config_of(repeated("lllf", 8)), PlanKind::kGrouped)), 49u);
  EXPECT_EQ(program_count(plan_programs(config_of(repeated("lllf", 16)), PlanKind::kGrouped)), 97u);
  // One a layer: 24 + 8 MLPs + 8·5.
  EXPECT_EQ(program_count(plan_programs(config_of(repeated("lllf", 8)), PlanKind::kSplit)), 72u);
}

TEST(ProgramPlan, PutsTheMlpOfAFullAttentionLayerIntoTheNextRun) {
  const auto programs = plan_programs(config_of("lllflllf"), PlanKind::kGrouped);
  EXPECT_THAT(names_of(programs),
              ElementsAre("run-00-02", "attention-03", "run-04-06", "attention-07", "tail"));
  EXPECT_THAT(programs[2].layers, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(programs[2].tensors.front(), text_layer_prefix(3) + "post_attention_layernorm.weight");
  EXPECT_THAT(programs[4].layers, ElementsAre(7));
}

TEST(ProgramPlan, HandlesOtherPlacesOfFullAttention) {
  EXPECT_THAT(names_of(plan_programs(config_of("ffl"), PlanKind::kGrouped)),
              ElementsAre("attention-00", "mlp-00", "attention-01", "run-02-02"));
  EXPECT_THAT(names_of(plan_programs(config_of("lf"), PlanKind::kSplit)),
              ElementsAre("run-00-00", "attention-01", "tail"));
}

TEST(ProgramPlan, TakesEveryTextLayerTensorOnce) {
  for (const char* pattern : {"lllflllf", "ffl", "l", "f", "lflf"}) {
    for (const PlanKind kind : {PlanKind::kGrouped, PlanKind::kSplit}) {
      const ModelConfig config = config_of(pattern);
      std::multiset<std::string> planned, needed;
      for (const PlannedProgram& program : plan_programs(config, kind)) {
        planned.insert(program.tensors.begin(), program.tensors.end());
      }
      for (const PlannedTensor& tensor : plan_tensors(config)) {
        if (tensor.tensor_class == TensorClass::kTextLinear ||
            tensor.tensor_class == TensorClass::kTextOther) {
          needed.insert(tensor.name);
        }
      }
      EXPECT_EQ(planned, needed) << pattern;
    }
  }
}

TEST(ProgramPlan, HasAProgramForEachVisionBlock) {
  ModelConfig config = config_of("lf");
  EXPECT_TRUE(plan_vision_programs(config).empty());
  config.vision.depth = 27;
  const auto programs = plan_vision_programs(config);
  EXPECT_EQ(program_count(programs), 27u);
  EXPECT_EQ(programs[7].name, "vision-07");
  EXPECT_EQ(programs[7].kind, ProgramKind::kVision);
  EXPECT_THAT(programs[7].layers, ElementsAre(7));
  // Each tensor of a block is in its program.
  std::set<std::string> planned;
  for (const PlannedProgram& program : programs) {
    planned.insert(program.tensors.begin(), program.tensors.end());
  }
  std::size_t of_blocks = 0;
  for (const PlannedTensor& tensor : plan_tensors(config)) {
    if (tensor.name.find("visual.blocks.") == std::string::npos) continue;
    ++of_blocks;
    EXPECT_TRUE(planned.contains(tensor.name)) << tensor.name;
  }
  EXPECT_EQ(of_blocks, planned.size());
}

}  // namespace
}  // namespace clefkit
