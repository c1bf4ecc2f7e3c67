#include "clefkit/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"

namespace clefkit {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string golden(const std::string& file) {
  return read_file(std::filesystem::path(CLEFKIT_SOURCE_DIR) / "tests/golden/checkpoints" / file,
                   1 << 20);
}

// `text` with the one place of `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

// The code and text of the error that micro's config.json gives with that change.
std::string error_of(std::string_view from, std::string_view to) {
  try {
    parse_model_config(replaced(golden("micro/config.json"), from, to),
                       golden("micro/joint_head_config.json"));
  } catch (const Error& error) {
    return fmt::format("{} {}", to_string(error.code()), error.what());
  }
  return "none";
}

std::string head_error_of(std::string_view from, std::string_view to) {
  try {
    parse_model_config(golden("micro/config.json"),
                       replaced(golden("micro/joint_head_config.json"), from, to));
  } catch (const Error& error) {
    return fmt::format("{} {}", to_string(error.code()), error.what());
  }
  return "none";
}

ModelConfig parsed(std::string_view from, std::string_view to) {
  return parse_model_config(replaced(golden("micro/config.json"), from, to),
                            golden("micro/joint_head_config.json"));
}

TEST(ModelConfig, ReadsTheMicroCheckpoint) {
  const ModelConfig config =
      parse_model_config(golden("micro/config.json"), golden("micro/joint_head_config.json"));

  EXPECT_EQ(config.text.hidden_size, 64u);
  EXPECT_EQ(config.text.key_dim(), 32u);
  EXPECT_EQ(config.text.value_dim(), 64u);
  EXPECT_EQ(config.text.conv_channels(), 128u);
  EXPECT_EQ(config.text.query_dim(), 128u);
  EXPECT_EQ(config.text.kv_dim(), 64u);
  EXPECT_EQ(config.text.rms_norm_eps, 1e-6f);
  EXPECT_EQ(config.text.rope_theta, 1e7);
  EXPECT_EQ(config.text.rotary_dim, 8u);
  EXPECT_THAT(config.text.mrope_section, ElementsAre(2, 1, 1));
  EXPECT_THAT(config.text.layer_types,
              ElementsAre(LayerType::kLinearAttention, LayerType::kLinearAttention,
                          LayerType::kLinearAttention, LayerType::kFullAttention));
  EXPECT_FALSE(config.text.tie_word_embeddings);
  EXPECT_TRUE(config.has_vision());
  EXPECT_EQ(config.vision.patch_values(), 1536u);
  EXPECT_EQ(config.vision.merged_size(), 192u);
  EXPECT_EQ(config.head.width, 32u);
  EXPECT_EQ(config.image_token_id, 712);
  EXPECT_EQ(config.vision_end_token_id, 710);
}

TEST(ModelConfig, ReadsTheTiedCheckpoint) {
  const ModelConfig config =
      parse_model_config(golden("tied/config.json"), golden("tied/joint_head_config.json"));
  EXPECT_TRUE(config.text.tie_word_embeddings);
  EXPECT_EQ(config.text.layer_types.size(), 8u);
  EXPECT_EQ(config.text.layer_types[7], LayerType::kFullAttention);
  EXPECT_THAT(config.text.mrope_section, ElementsAre(3, 3, 2));
}

TEST(ModelConfig, DerivesLayerTypesFromTheInterval) {
  const std::string types = R"("layer_types": [
      "linear_attention",
      "linear_attention",
      "linear_attention",
      "full_attention"
    ])";
  const std::string config = replaced(golden("micro/config.json"), types, R"("layer_types": null)");
  const auto types_of = [&](const std::string& text) {
    return parse_model_config(text, golden("micro/joint_head_config.json")).text.layer_types;
  };
  constexpr auto kLinear = LayerType::kLinearAttention;
  constexpr auto kFull = LayerType::kFullAttention;
  EXPECT_THAT(types_of(config), ElementsAre(kLinear, kLinear, kLinear, kFull));
  EXPECT_THAT(types_of(replaced(config, R"("full_attention_interval": 4)",
                                R"("full_attention_interval": 2)")),
              ElementsAre(kLinear, kFull, kLinear, kFull));
}

TEST(ModelConfig, AcceptsFullLayersAtAnyPlace) {
  const ModelConfig config = parsed("[\n      \"linear_attention\"", "[\n      \"full_attention\"");
  EXPECT_EQ(config.text.layer_types[0], LayerType::kFullAttention);
}

TEST(ModelConfig, AcceptsOlderRopeKeys) {
  EXPECT_EQ(parsed("rope_parameters", "rope_scaling").text.rotary_dim, 8u);
  // The factor beside the parameters instead of among them.
  EXPECT_EQ(parsed("\"partial_rotary_factor\": 0.25,\n      \"rope_theta\"", "\"rope_theta\"")
                .text.rotary_dim,
            8u);
  EXPECT_EQ(parsed(R"("rope_type": "default")", R"("type": "mrope")").text.rope_theta, 1e7);
}

TEST(ModelConfig, AcceptsAModelWithoutVision) {
  const ModelConfig config = parsed("vision_config", "unused_config");
  EXPECT_FALSE(config.has_vision());
  EXPECT_EQ(config.image_token_id, -1);
}

TEST(ModelConfig, AcceptsADropoutKeyInTheHead) {
  EXPECT_EQ(head_error_of("\"width\"", "\"dropout\": 0.1,\n  \"width\""), "none");
}

struct BadConfig {
  std::string from;
  std::string to;
  std::string error;
};

TEST(ModelConfig, RejectsSizesThatCannotBe) {
  const std::string text = "corrupt_data config.json: text_config.";
  const std::vector<BadConfig> cases{
      {R"("hidden_size": 64)", R"("hidden_size": 0)",
       text + "hidden_size: 0, expected an integer from 1 to 262144"},
      {R"("hidden_size": 64)", R"("hidden_size": 18446744073709551616)", text + "hidden_size: 184"},
      {R"("hidden_size": 64)", R"("hidden_size": -64)", text + "hidden_size: -64, expected"},
      {R"("hidden_size": 64)", R"("hidden_size": 64.5)", text + "hidden_size: 64.5, expected"},
      {R"("hidden_size": 64)", R"("hidden_size": "64")", text + "hidden_size: \"64\", expected"},
      {R"("hidden_size": 64)", R"("hidden_size": null)", text + "hidden_size: the key is absent"},
      {R"("num_hidden_layers": 4)", R"("num_hidden_layers": 5)",
       text + "layer_types: 4 layers, expected 5"},
      {R"("num_key_value_heads": 2)", R"("num_key_value_heads": 3)",
       text + "num_attention_heads: 4, expected a multiple of 3"},
      {R"("linear_num_key_heads": 2)", R"("linear_num_key_heads": 3)",
       text + "linear_num_value_heads: 4, expected a multiple of 3"},
      {"[\n        2,\n        1,\n        1\n      ]", "[2, 1, 2]",
       text + "rope_parameters.mrope_section: adds up to 5, expected 4"},
      {"[\n        2,\n        1,\n        1\n      ]", "[2, 2]",
       text + "rope_parameters.mrope_section: 2 numbers, expected 3"},
      {"\"partial_rotary_factor\": 0.25,\n      \"rope_theta\"",
       "\"partial_rotary_factor\": 1.5,\n      \"rope_theta\"",
       text + "rope_parameters.partial_rotary_factor: 1.5 of head_dim 32"},
      {R"("rope_theta": 10000000)", R"("rope_theta": 0)",
       text + "rope_parameters.rope_theta: 0, expected a number above 0"},
      {R"("rms_norm_eps": 1e-06)", R"("rms_norm_eps": 1e999)",
       text + "rms_norm_eps: 1e999, expected a number above 0"},
      {R"("vocab_size": 768)", R"("vocab_size": 700)",
       "corrupt_data config.json: image_token_id: 712, expected an integer from 0 to 699"},
      {R"("num_position_embeddings": 64)", R"("num_position_embeddings": 65)",
       "corrupt_data config.json: vision_config.num_position_embeddings: 65, expected a square"},
      {R"("out_hidden_size": 64)", R"("out_hidden_size": 32)",
       "corrupt_data config.json: vision_config.out_hidden_size: 32, expected 64"},
      {R"("num_heads": 2)", R"("num_heads": 8)",
       "corrupt_data config.json: vision_config.num_heads: heads of 6 values"},
  };
  for (const BadConfig& bad : cases) {
    EXPECT_THAT(error_of(bad.from, bad.to), StartsWith(bad.error));
  }
}

TEST(ModelConfig, NamesWhatItDoesNotSupport) {
  const std::string text = "unsupported config.json: text_config.";
  const std::vector<BadConfig> cases{
      {R"("model_type": "qwen3_5",)", R"("model_type": "llama",)",
       "unsupported config.json: model_type: `llama`, expected `qwen3_5`"},
      {R"("attn_output_gate": true)", R"("attn_output_gate": false)",
       text + "attn_output_gate: false, expected true"},
      {R"("hidden_act": "silu")", R"("hidden_act": "gelu")",
       text + "hidden_act: `gelu`, expected `silu`"},
      {R"("attention_bias": false)", R"("attention_bias": true)",
       text + "attention_bias: true, expected false"},
      {R"("mrope_interleaved": true)", R"("mrope_interleaved": false)",
       text + "rope_parameters.mrope_interleaved: false, expected true"},
      {R"("rope_type": "default")", R"("rope_type": "yarn")",
       text + "rope_parameters.rope_type: `yarn`"},
      {"\"full_attention\"\n", "\"sliding_attention\"\n",
       text + "layer_types: `sliding_attention`"},
      {R"("deepstack_visual_indexes": [])", R"("deepstack_visual_indexes": [8])",
       "unsupported config.json: vision_config.deepstack_visual_indexes"},
  };
  for (const BadConfig& bad : cases) {
    EXPECT_THAT(error_of(bad.from, bad.to), StartsWith(bad.error));
  }
}

TEST(ModelConfig, RejectsAHeadThatDoesNotFit) {
  const std::string head = "corrupt_data joint_head_config.json: ";
  EXPECT_THAT(head_error_of(R"("hidden_size": 64)", R"("hidden_size": 32)"),
              StartsWith(head + "hidden_size: 32, expected 64"));
  EXPECT_THAT(head_error_of(R"("heads": 2)", R"("heads": 3)"),
              StartsWith(head + "width: 32, expected a multiple of 3"));
  EXPECT_THAT(head_error_of(R"("layers": 2)", R"("layers": 0)"),
              StartsWith(head + "layers: 0, expected"));
}

TEST(ModelConfig, RejectsRepeatedKeysAndWhatIsNoObject) {
  EXPECT_THAT(error_of(R"("head_dim": 32)", R"("head_dim": 32, "head_dim": 32)"),
              StartsWith("corrupt_data config.json"));
  EXPECT_THAT(error_of(R"("text_config": {)", R"("text_config": 1, "other": {)"),
              StartsWith("corrupt_data config.json: text_config: found a number"));
  EXPECT_THROW(parse_model_config("[]", "{}"), Error);
  EXPECT_THROW(parse_model_config("", ""), Error);
}

}  // namespace
}  // namespace clefkit
