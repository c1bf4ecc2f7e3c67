#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace clefkit {

enum class LayerType { kLinearAttention, kFullAttention };

// The text layers. Fields keep config.json's keys (model.md 1.1); parse_model_config has checked
// that they are in range and fit each other.
struct TextConfig {
  std::size_t hidden_size = 0;
  std::size_t intermediate_size = 0;
  std::size_t num_hidden_layers = 0;
  std::size_t num_attention_heads = 0;
  std::size_t num_key_value_heads = 0;  // Divides num_attention_heads.
  std::size_t head_dim = 0;
  std::size_t linear_num_key_heads = 0;
  std::size_t linear_num_value_heads = 0;  // A multiple of linear_num_key_heads.
  std::size_t linear_key_head_dim = 0;
  std::size_t linear_value_head_dim = 0;
  std::size_t linear_conv_kernel_dim = 0;
  std::size_t vocab_size = 0;
  float rms_norm_eps = 0;
  double rope_theta = 0;
  std::size_t rotary_dim = 0;                  // head_dim · partial_rotary_factor, even.
  std::array<std::size_t, 3> mrope_section{};  // T, H, W; together rotary_dim / 2.
  std::vector<LayerType> layer_types{};        // num_hidden_layers of them.
  bool tie_word_embeddings = false;            // lm_head is embed_tokens.

  // Widths of the linear attention layers.
  std::size_t key_dim() const { return linear_num_key_heads * linear_key_head_dim; }
  std::size_t value_dim() const { return linear_num_value_heads * linear_value_head_dim; }
  std::size_t conv_channels() const { return 2 * key_dim() + value_dim(); }  // q, k, v.
  // Widths of the full attention layers.
  std::size_t query_dim() const { return num_attention_heads * head_dim; }
  std::size_t kv_dim() const { return num_key_value_heads * head_dim; }
};

// The vision encoder; depth 0 when the model has none.
struct VisionConfig {
  std::size_t depth = 0;
  std::size_t hidden_size = 0;
  std::size_t intermediate_size = 0;
  std::size_t num_heads = 0;
  std::size_t num_position_embeddings = 0;  // A square number.
  std::size_t out_hidden_size = 0;          // The text layers' hidden_size.
  std::size_t patch_size = 0;
  std::size_t spatial_merge_size = 0;
  std::size_t temporal_patch_size = 0;
  std::size_t in_channels = 0;

  // The class's defaults: no release's config.json has a key for them.
  static constexpr double kLayerNormEps = 1e-6;
  static constexpr double kRopeTheta = 10000;

  std::size_t head_dim() const { return hidden_size / num_heads; }
  // Values of one row of pixels: a patch of temporal_patch_size frames.
  std::size_t patch_values() const {
    return in_channels * temporal_patch_size * patch_size * patch_size;
  }
  // Width of the merger: the patches that become one token, side by side.
  std::size_t merged_size() const { return hidden_size * spatial_merge_size * spatial_merge_size; }
};

// The joint schema head (joint_head_config.json).
struct HeadConfig {
  std::size_t hidden_size = 0;  // The text layers' hidden_size.
  std::size_t width = 0;        // A multiple of heads.
  std::size_t routing_layers = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t feedforward = 0;
};

struct ModelConfig {
  TextConfig text;
  VisionConfig vision;
  HeadConfig head;
  // -1 where has_vision() is false and config.json names none.
  std::int32_t image_token_id = -1;
  std::int32_t video_token_id = -1;
  std::int32_t vision_start_token_id = -1;
  std::int32_t vision_end_token_id = -1;

  bool has_vision() const { return vision.depth > 0; }
};

// Parses the texts of config.json and joint_head_config.json. Throws Error whose `where` is the
// file and the key (`config.json: text_config.head_dim`): kCorruptData for what no such model can
// have, kUnsupported for an architecture or an option that this code does not compute.
ModelConfig parse_model_config(std::string_view config_json, std::string_view head_json);

}  // namespace clefkit
