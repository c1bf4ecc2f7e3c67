#include "clefkit/model/tensor_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace clefkit {
namespace {

using ::testing::ElementsAre;

// The release's configuration, model.md 1.1.
ModelConfig flash() {
  ModelConfig config;
  config.text = {.hidden_size = 4096,
                 .intermediate_size = 12288,
                 .num_hidden_layers = 32,
                 .num_attention_heads = 16,
                 .num_key_value_heads = 4,
                 .head_dim = 256,
                 .linear_num_key_heads = 16,
                 .linear_num_value_heads = 32,
                 .linear_key_head_dim = 128,
                 .linear_value_head_dim = 128,
                 .linear_conv_kernel_dim = 4,
                 .vocab_size = 248320};
  for (std::size_t layer = 0; layer < 32; ++layer) {
    config.text.layer_types.push_back(layer % 4 == 3 ? LayerType::kFullAttention
                                                     : LayerType::kLinearAttention);
  }
  config.vision = {.depth = 27,
                   .hidden_size = 1152,
                   .intermediate_size = 4304,
                   .num_heads = 16,
                   .num_position_embeddings = 2304,
                   .out_hidden_size = 4096,
                   .patch_size = 16,
                   .spatial_merge_size = 2,
                   .temporal_patch_size = 2,
                   .in_channels = 3};
  config.head = {.hidden_size = 4096,
                 .width = 1024,
                 .routing_layers = 2,
                 .layers = 4,
                 .heads = 16,
                 .feedforward = 4096};
  return config;
}

struct Total {
  std::size_t tensors = 0;
  std::size_t parameters = 0;
};

template <typename Predicate>
Total total(const std::vector<PlannedTensor>& plan, Predicate counts) {
  Total result;
  for (const PlannedTensor& tensor : plan) {
    if (!counts(tensor)) continue;
    ++result.tensors;
    result.parameters += tensor.element_count();
  }
  return result;
}

Total total_of(const std::vector<PlannedTensor>& plan, TensorFile file) {
  return total(plan, [&](const PlannedTensor& tensor) { return tensor.file == file; });
}

const PlannedTensor& named(const std::vector<PlannedTensor>& plan, const std::string& name) {
  return *std::find_if(plan.begin(), plan.end(),
                       [&](const PlannedTensor& tensor) { return tensor.name == name; });
}

// Published figures of the release, model.md 1.1 and 1.2.
TEST(TensorPlan, HasTheReleasesTotals) {
  const auto plan = plan_tensors(flash());
  const Total backbone = total_of(plan, TensorFile::kBackbone);
  EXPECT_EQ(backbone.tensors, 760u);
  EXPECT_EQ(backbone.parameters, 9409813744u);
  const Total head = total_of(plan, TensorFile::kJointHead);
  EXPECT_EQ(head.tensors, 122u);
  EXPECT_EQ(head.parameters, 121762820u);
  const Total vision = total(plan, [](const PlannedTensor& tensor) {
    return tensor.tensor_class == TensorClass::kVision;
  });
  EXPECT_EQ(vision.parameters, 456010480u);
}

// Model.md 11.
TEST(TensorPlan, HasTheTotalsOfTheLargerModel) {
  ModelConfig config = flash();
  config.text.hidden_size = config.vision.out_hidden_size = config.head.hidden_size = 5120;
  config.text.num_hidden_layers = 64;
  const std::vector<LayerType> first_half = config.text.layer_types;
  config.text.layer_types.insert(config.text.layer_types.end(), first_half.begin(),
                                 first_half.end());
  config.text.num_attention_heads = 24;
  config.text.linear_num_value_heads = 48;
  config.text.intermediate_size = 17408;

  const auto plan = plan_tensors(config);

  EXPECT_EQ(total_of(plan, TensorFile::kBackbone).parameters, 54713457120u / 2);
  EXPECT_EQ(total_of(plan, TensorFile::kJointHead).parameters, 128056324u);
  const std::string full = "model.language_model.layers.63.self_attn.";
  EXPECT_THAT(named(plan, full + "q_proj.weight").shape, ElementsAre(12288, 5120));
  EXPECT_THAT(named(plan, full + "o_proj.weight").shape, ElementsAre(5120, 6144));
  EXPECT_THAT(named(plan, "model.language_model.layers.0.linear_attn.in_proj_qkv.weight").shape,
              ElementsAre(10240, 5120));
}

TEST(TensorPlan, IsInNaturalOrder) {
  const auto plan = plan_tensors(flash());
  const auto position = [&](const std::string& name) { return &named(plan, name) - plan.data(); };
  EXPECT_EQ(position("lm_head.weight"), 0);
  EXPECT_EQ(position("model.language_model.embed_tokens.weight"), 1);
  EXPECT_LT(position("model.language_model.layers.9.mlp.up_proj.weight"),
            position("model.language_model.layers.10.input_layernorm.weight"));
  EXPECT_LT(position("model.language_model.norm.weight"),
            position("model.visual.blocks.0.attn.proj.bias"));
}

TEST(TensorPlan, TiedEmbeddingsHaveNoHeadTable) {
  ModelConfig config = flash();
  config.text.tie_word_embeddings = true;
  const auto plan = plan_tensors(config);
  EXPECT_EQ(total_of(plan, TensorFile::kBackbone).parameters, 9409813744u - 1017118720u);
}

TEST(TensorPlan, OnlyNormsAndDecayMayBeFloat32) {
  const auto plan = plan_tensors(flash());
  EXPECT_TRUE(named(plan, "model.language_model.layers.0.linear_attn.A_log").allows(DType::kF32));
  EXPECT_TRUE(named(plan, "model.language_model.norm.weight").allows(DType::kF32));
  const PlannedTensor& linear = named(plan, "model.language_model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(linear.tensor_class, TensorClass::kTextLinear);
  EXPECT_TRUE(linear.allows(DType::kBF16));
  EXPECT_FALSE(linear.allows(DType::kF32));
  EXPECT_FALSE(linear.allows(DType::kF16));
}

}  // namespace
}  // namespace clefkit
