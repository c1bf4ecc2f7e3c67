#include "clefkit/synth/presets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"
#include "clefkit/synth/byte_tokenizer.h"

namespace clefkit {
namespace {

// Every fourth layer attends fully, as in all models of the family.
constexpr std::size_t kInterval = 4;

struct Preset {
  std::string name;
  ModelConfig config;
};

ModelConfig flash_config() {
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
                 .vocab_size = 248320,
                 .mrope_section = {11, 11, 10}};
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

// Model.md 11.
ModelConfig clef_config() {
  ModelConfig config = flash_config();
  config.text.hidden_size = config.vision.out_hidden_size = config.head.hidden_size = 5120;
  config.text.intermediate_size = 17408;
  config.text.num_hidden_layers = 64;
  config.text.num_attention_heads = 24;
  config.text.linear_num_value_heads = 48;
  return config;
}

ModelConfig nano_config() {
  ModelConfig config;
  config.text = {.hidden_size = 128,
                 .intermediate_size = 384,
                 .num_hidden_layers = 8,
                 .num_attention_heads = 4,
                 .num_key_value_heads = 2,
                 .head_dim = 64,
                 .linear_num_key_heads = 2,
                 .linear_num_value_heads = 4,
                 .linear_key_head_dim = 64,
                 .linear_value_head_dim = 64,
                 .linear_conv_kernel_dim = 4,
                 .vocab_size = 512,
                 .mrope_section = {3, 3, 2}};
  config.vision = {.depth = 3,
                   .hidden_size = 96,
                   .intermediate_size = 288,
                   .num_heads = 4,
                   .num_position_embeddings = 2304,
                   .out_hidden_size = 128,
                   .patch_size = 16,
                   .spatial_merge_size = 2,
                   .temporal_patch_size = 2,
                   .in_channels = 3};
  config.head = {.hidden_size = 128,
                 .width = 96,
                 .routing_layers = 2,
                 .layers = 4,
                 .heads = 4,
                 .feedforward = 256};
  return config;
}

ModelConfig tiny_config() {
  ModelConfig config;
  config.text = {.hidden_size = 64,
                 .intermediate_size = 192,
                 .num_hidden_layers = 4,
                 .num_attention_heads = 4,
                 .num_key_value_heads = 2,
                 .head_dim = 32,
                 .linear_num_key_heads = 2,
                 .linear_num_value_heads = 4,
                 .linear_key_head_dim = 32,
                 .linear_value_head_dim = 32,
                 .linear_conv_kernel_dim = 4,
                 .vocab_size = 320,
                 .mrope_section = {2, 1, 1}};
  config.vision = {.depth = 2,
                   .hidden_size = 48,
                   .intermediate_size = 128,
                   .num_heads = 2,
                   .num_position_embeddings = 144,
                   .out_hidden_size = 64,
                   .patch_size = 16,
                   .spatial_merge_size = 2,
                   .temporal_patch_size = 2,
                   .in_channels = 3};
  config.head = {.hidden_size = 64,
                 .width = 32,
                 .routing_layers = 2,
                 .layers = 2,
                 .heads = 2,
                 .feedforward = 96};
  return config;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all{{"clef-flash", flash_config()},
                                       {"clef", clef_config()},
                                       {"nano", nano_config()},
                                       {"tiny", tiny_config()}};
  return all;
}

// Where the added tokens begin: the release's place, or right behind the bytes.
std::size_t first_added_token(const ModelConfig& config) {
  const std::size_t release = 248044;
  return config.text.vocab_size > release ? release : kByteTokens;
}

Json layer_types_json(const TextConfig& text) {
  Json types = Json::array();
  for (std::size_t layer = 0; layer < text.num_hidden_layers; ++layer) {
    types.push_back((layer + 1) % kInterval == 0 ? "full_attention" : "linear_attention");
  }
  return types;
}

Json size_json(std::size_t value) { return Json(static_cast<std::uint64_t>(value)); }

Json text_json(const TextConfig& text, std::size_t end_of_text) {
  Json sections = Json::array();
  for (const std::size_t section : text.mrope_section) sections.push_back(size_json(section));
  return Json::object({
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"attn_output_gate", true},
      {"bos_token_id", nullptr},
      {"dtype", "bfloat16"},
      {"eos_token_id", size_json(end_of_text)},
      {"full_attention_interval", size_json(kInterval)},
      {"head_dim", size_json(text.head_dim)},
      {"hidden_act", "silu"},
      {"hidden_size", size_json(text.hidden_size)},
      {"initializer_range", 0.02},
      {"intermediate_size", size_json(text.intermediate_size)},
      {"layer_types", layer_types_json(text)},
      {"linear_conv_kernel_dim", size_json(text.linear_conv_kernel_dim)},
      {"linear_key_head_dim", size_json(text.linear_key_head_dim)},
      {"linear_num_key_heads", size_json(text.linear_num_key_heads)},
      {"linear_num_value_heads", size_json(text.linear_num_value_heads)},
      {"linear_value_head_dim", size_json(text.linear_value_head_dim)},
      {"mamba_ssm_dtype", "float32"},
      {"max_position_embeddings", 262144},
      {"mlp_only_layers", Json::array()},
      {"model_type", "qwen3_5_text"},
      {"mtp_num_hidden_layers", 0},
      {"mtp_use_dedicated_embeddings", false},
      {"num_attention_heads", size_json(text.num_attention_heads)},
      {"num_hidden_layers", size_json(text.num_hidden_layers)},
      {"num_key_value_heads", size_json(text.num_key_value_heads)},
      {"pad_token_id", nullptr},
      {"partial_rotary_factor", 0.25},
      {"rms_norm_eps", 1e-6},
      {"rope_parameters", Json::object({{"mrope_interleaved", true},
                                        {"mrope_section", std::move(sections)},
                                        {"partial_rotary_factor", 0.25},
                                        {"rope_theta", 10000000},
                                        {"rope_type", "default"}})},
      {"tie_word_embeddings", false},
      {"use_cache", true},
      {"vocab_size", size_json(text.vocab_size)},
  });
}

Json vision_json(const VisionConfig& vision) {
  return Json::object({
      {"deepstack_visual_indexes", Json::array()},
      {"depth", size_json(vision.depth)},
      {"dtype", "bfloat16"},
      {"hidden_act", "gelu_pytorch_tanh"},
      {"hidden_size", size_json(vision.hidden_size)},
      {"in_channels", size_json(vision.in_channels)},
      {"initializer_range", 0.02},
      {"intermediate_size", size_json(vision.intermediate_size)},
      {"model_type", "qwen3_5_vision"},
      {"num_heads", size_json(vision.num_heads)},
      {"num_position_embeddings", size_json(vision.num_position_embeddings)},
      {"out_hidden_size", size_json(vision.out_hidden_size)},
      {"patch_size", size_json(vision.patch_size)},
      {"spatial_merge_size", size_json(vision.spatial_merge_size)},
      {"temporal_patch_size", size_json(vision.temporal_patch_size)},
  });
}

std::string config_json(const ModelConfig& config) {
  const std::size_t first = first_added_token(config);
  const auto token_id = [&](std::string_view content) {
    return size_json(first + added_token_index(content));
  };
  const Json json = Json::object({
      {"architectures", Json::array({"Qwen3_5ForConditionalGeneration"})},
      {"dtype", "bfloat16"},
      {"image_token_id", token_id("<|image_pad|>")},
      {"model_type", "qwen3_5"},
      {"text_config", text_json(config.text, first + added_token_index("<|endoftext|>"))},
      {"tie_word_embeddings", false},
      {"transformers_version", "5.10.2"},
      {"video_token_id", token_id("<|video_pad|>")},
      {"vision_config", vision_json(config.vision)},
      {"vision_end_token_id", token_id("<|vision_end|>")},
      {"vision_start_token_id", token_id("<|vision_start|>")},
  });
  return to_pretty_string(json) + "\n";
}

std::string head_config_json(const HeadConfig& head) {
  const Json json = Json::object({{"hidden_size", size_json(head.hidden_size)},
                                  {"width", size_json(head.width)},
                                  {"routing_layers", size_json(head.routing_layers)},
                                  {"layers", size_json(head.layers)},
                                  {"heads", size_json(head.heads)},
                                  {"feedforward", size_json(head.feedforward)}});
  return to_pretty_string(json) + "\n";
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Preset& preset : presets()) result.push_back(preset.name);
    return result;
  }();
  return names;
}

ConfigTexts preset_config(std::string_view name) {
  const auto found = std::find_if(presets().begin(), presets().end(),
                                  [&](const Preset& preset) { return preset.name == name; });
  if (found == presets().end()) {
    throw_error(ErrorCode::kInvalidArgument, "preset", "`{}`, expected one of {}", name,
                fmt::join(preset_names(), ", "));
  }
  return {config_json(found->config), head_config_json(found->config.head)};
}

std::string default_head_config_json(std::size_t hidden_size) {
  const std::size_t width = std::clamp<std::size_t>(std::bit_floor(hidden_size) / 4, 32, 1024);
  return head_config_json({.hidden_size = hidden_size,
                           .width = width,
                           .routing_layers = 2,
                           .layers = 4,
                           .heads = std::max<std::size_t>(width / 64, 1),
                           .feedforward = 4 * width});
}

}  // namespace clefkit
