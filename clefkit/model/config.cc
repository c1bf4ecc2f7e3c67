#include "clefkit/model/config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "clefkit/model/config_reader.h"

namespace clefkit {
namespace {

// Far above any model of this family, and low enough that no product of sizes overflows.
constexpr std::size_t kMaxWidth = std::size_t{1} << 18;
constexpr std::size_t kMaxHeads = 1024;
constexpr std::size_t kMaxHeadDim = 4096;
constexpr std::size_t kMaxLayers = 1024;
constexpr std::size_t kMaxVocabulary = std::size_t{1} << 22;
constexpr std::size_t kMaxPositions = std::size_t{1} << 20;
constexpr std::size_t kMaxPatch = 64;

std::size_t read_rotary_dim(const ConfigReader& text, const ConfigReader& rope,
                            std::size_t head_dim) {
  // Older files have the factor beside the rope parameters; the architecture's default is 0.25.
  const ConfigReader& holder = rope.has("partial_rotary_factor") ? rope : text;
  const double factor = holder.number_or("partial_rotary_factor", 0.25);
  const double rotary_dim = std::floor(static_cast<double>(head_dim) * factor);
  if (!(factor > 0 && factor <= 1) || rotary_dim < 2 || std::fmod(rotary_dim, 2) != 0) {
    holder.corrupt("partial_rotary_factor",
                   "{} of head_dim {}, expected a factor up to 1 that gives an even number", factor,
                   head_dim);
  }
  return static_cast<std::size_t>(rotary_dim);
}

void read_rope(const ConfigReader& text, TextConfig& config) {
  const ConfigReader rope =
      text.section(text.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const std::string type = rope.string_or(rope.has("rope_type") ? "rope_type" : "type", "default");
  if (type != "default" && type != "mrope") {
    rope.unsupported("rope_type", "`{}`, expected `default`", type);
  }
  rope.require_bool("mrope_interleaved", true);
  const ConfigReader& theta_holder = rope.has("rope_theta") ? rope : text;
  config.rope_theta = theta_holder.positive_number("rope_theta");
  config.rotary_dim = read_rotary_dim(text, rope, config.head_dim);

  config.mrope_section = {11, 11, 10};
  if (rope.has("mrope_section")) {
    const auto sections = rope.sizes("mrope_section", kMaxHeadDim);
    if (sections.size() != 3) {
      rope.corrupt("mrope_section", "{} numbers, expected 3", sections.size());
    }
    std::copy(sections.begin(), sections.end(), config.mrope_section.begin());
  }
  const std::size_t sum =
      config.mrope_section[0] + config.mrope_section[1] + config.mrope_section[2];
  if (sum != config.rotary_dim / 2) {
    rope.corrupt("mrope_section", "adds up to {}, expected {}, half of the rotated dimensions", sum,
                 config.rotary_dim / 2);
  }
}

void read_layer_types(const ConfigReader& text, TextConfig& config) {
  if (!text.has("layer_types")) {
    const std::size_t interval =
        text.has("full_attention_interval") ? text.size("full_attention_interval", kMaxLayers) : 4;
    for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
      config.layer_types.push_back((layer + 1) % interval == 0 ? LayerType::kFullAttention
                                                               : LayerType::kLinearAttention);
    }
    return;
  }
  for (const std::string& type : text.strings("layer_types")) {
    if (type == "linear_attention") {
      config.layer_types.push_back(LayerType::kLinearAttention);
    } else if (type == "full_attention") {
      config.layer_types.push_back(LayerType::kFullAttention);
    } else {
      text.unsupported("layer_types", "`{}`, expected `linear_attention` or `full_attention`",
                       type);
    }
  }
  if (config.layer_types.size() != config.num_hidden_layers) {
    text.corrupt("layer_types", "{} layers, expected {}, the num_hidden_layers",
                 config.layer_types.size(), config.num_hidden_layers);
  }
}

TextConfig read_text(const ConfigReader& text) {
  text.require_string("model_type", "qwen3_5_text");
  text.require_string("hidden_act", "silu");
  text.require_bool("attention_bias", false);
  text.require_bool("attn_output_gate", true);
  TextConfig config;
  config.hidden_size = text.size("hidden_size", kMaxWidth);
  config.intermediate_size = text.size("intermediate_size", kMaxWidth);
  config.num_hidden_layers = text.size("num_hidden_layers", kMaxLayers);
  config.num_attention_heads = text.size("num_attention_heads", kMaxHeads);
  config.num_key_value_heads = text.size("num_key_value_heads", kMaxHeads);
  text.require_multiple("num_attention_heads", config.num_attention_heads, "num_key_value_heads",
                        config.num_key_value_heads);
  config.head_dim = text.size("head_dim", kMaxHeadDim);
  config.linear_num_key_heads = text.size("linear_num_key_heads", kMaxHeads);
  config.linear_num_value_heads = text.size("linear_num_value_heads", kMaxHeads);
  text.require_multiple("linear_num_value_heads", config.linear_num_value_heads,
                        "linear_num_key_heads", config.linear_num_key_heads);
  config.linear_key_head_dim = text.size("linear_key_head_dim", kMaxHeadDim);
  config.linear_value_head_dim = text.size("linear_value_head_dim", kMaxHeadDim);
  config.linear_conv_kernel_dim = text.size("linear_conv_kernel_dim", kMaxPatch);
  config.vocab_size = text.size("vocab_size", kMaxVocabulary);
  config.rms_norm_eps = static_cast<float>(text.positive_number("rms_norm_eps"));
  read_rope(text, config);
  read_layer_types(text, config);
  return config;
}

VisionConfig read_vision(const ConfigReader& vision, const TextConfig& text) {
  vision.require_string("model_type", "qwen3_5_vision");
  vision.require_string("hidden_act", "gelu_pytorch_tanh");
  if (vision.has("deepstack_visual_indexes") && !vision.is_empty("deepstack_visual_indexes")) {
    vision.unsupported("deepstack_visual_indexes", "not empty, expected no deepstack layers");
  }
  VisionConfig config;
  config.depth = vision.size("depth", kMaxLayers);
  config.hidden_size = vision.size("hidden_size", kMaxWidth);
  config.intermediate_size = vision.size("intermediate_size", kMaxWidth);
  config.num_heads = vision.size("num_heads", kMaxHeads);
  vision.require_multiple("hidden_size", config.hidden_size, "num_heads", config.num_heads);
  if (config.hidden_size / config.num_heads % 4 != 0) {
    // Rows and columns each rotate a half, in pairs.
    vision.corrupt("num_heads", "heads of {} values, expected a multiple of 4",
                   config.hidden_size / config.num_heads);
  }
  config.num_position_embeddings = vision.size("num_position_embeddings", kMaxPositions);
  const auto side = static_cast<std::size_t>(
      std::llround(std::sqrt(static_cast<double>(config.num_position_embeddings))));
  if (side * side != config.num_position_embeddings) {
    vision.corrupt("num_position_embeddings", "{}, expected a square number",
                   config.num_position_embeddings);
  }
  config.out_hidden_size = vision.size("out_hidden_size", kMaxWidth);
  if (config.out_hidden_size != text.hidden_size) {
    vision.corrupt("out_hidden_size", "{}, expected {}, the text layers' hidden_size",
                   config.out_hidden_size, text.hidden_size);
  }
  config.patch_size = vision.size("patch_size", kMaxPatch);
  config.spatial_merge_size = vision.size("spatial_merge_size", kMaxPatch);
  config.temporal_patch_size = vision.size("temporal_patch_size", kMaxPatch);
  for (const char* key : {"spatial_merge_size", "temporal_patch_size"}) {
    if (const std::size_t size = vision.size(key, kMaxPatch); size != 2) {
      vision.unsupported(key, "{}, expected 2", size);
    }
  }
  config.in_channels = vision.size("in_channels", kMaxPatch);
  if (config.in_channels != 3) {
    vision.unsupported("in_channels", "{}, expected the 3 of RGB pictures", config.in_channels);
  }
  return config;
}

HeadConfig read_head(const ConfigReader& head, const TextConfig& text) {
  HeadConfig config;
  config.hidden_size = head.size("hidden_size", kMaxWidth);
  if (config.hidden_size != text.hidden_size) {
    head.corrupt("hidden_size", "{}, expected {}, the text layers' hidden_size", config.hidden_size,
                 text.hidden_size);
  }
  config.width = head.size("width", kMaxWidth);
  config.routing_layers = head.size("routing_layers", kMaxLayers);
  config.layers = head.size("layers", kMaxLayers);
  config.heads = head.size("heads", kMaxHeads);
  head.require_multiple("width", config.width, "heads", config.heads);
  config.feedforward = head.size("feedforward", kMaxWidth);
  return config;
}

}  // namespace

ModelConfig parse_model_config(std::string_view config_json, std::string_view head_json) {
  const ConfigReader root = ConfigReader::parse(config_json, "config.json");
  root.require_string("model_type", "qwen3_5");
  ModelConfig config;
  const ConfigReader text = root.section("text_config");
  config.text = read_text(text);
  // transformers ties by the outer key; a file without it can only mean the inner one.
  const ConfigReader& tie_holder = root.has("tie_word_embeddings") ? root : text;
  config.text.tie_word_embeddings = tie_holder.bool_or("tie_word_embeddings", false);
  if (root.has("vision_config")) {
    config.vision = read_vision(root.section("vision_config"), config.text);
    const auto token_id = [&](const char* key) {
      return static_cast<std::int32_t>(root.index(key, config.text.vocab_size));
    };
    config.image_token_id = token_id("image_token_id");
    config.video_token_id = token_id("video_token_id");
    config.vision_start_token_id = token_id("vision_start_token_id");
    config.vision_end_token_id = token_id("vision_end_token_id");
  }
  const ConfigReader head = ConfigReader::parse(head_json, "joint_head_config.json");
  config.head = read_head(head, config.text);
  return config;
}

}  // namespace clefkit
