#include "clefkit/model/tensor_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>
#include <utility>

namespace clefkit {
namespace {

using Shape = std::vector<std::size_t>;

// Collects the tensors of one part of the model.
class Collector {
 public:
  Collector(std::vector<PlannedTensor>& tensors, TensorFile file)
      : tensors_(tensors), file_(file) {}

  void add(std::string name, Shape shape, TensorClass tensor_class, bool allows_float32 = false) {
    tensors_.push_back({std::move(name), std::move(shape), tensor_class, file_, allows_float32});
  }
  // Weight [out, in] and bias [out].
  void add_linear(const std::string& name, std::size_t out, std::size_t in, TensorClass kind) {
    add(name + ".weight", {out, in}, kind);
    add(name + ".bias", {out}, kind);
  }
  void add_layer_norm(const std::string& name, std::size_t size, TensorClass kind) {
    add(name + ".weight", {size}, kind);
    add(name + ".bias", {size}, kind);
  }

 private:
  std::vector<PlannedTensor>& tensors_;
  TensorFile file_;
};

void add_linear_attention(Collector& out, const std::string& prefix, const TextConfig& config) {
  const auto linear = [&](const char* name, std::size_t rows, std::size_t columns) {
    out.add(prefix + name + ".weight", {rows, columns}, TensorClass::kTextLinear);
  };
  const std::size_t heads = config.linear_num_value_heads;
  linear("in_proj_qkv", config.conv_channels(), config.hidden_size);
  linear("in_proj_z", config.value_dim(), config.hidden_size);
  linear("in_proj_a", heads, config.hidden_size);
  linear("in_proj_b", heads, config.hidden_size);
  linear("out_proj", config.hidden_size, config.value_dim());
  out.add(prefix + "conv1d.weight", {config.conv_channels(), 1, config.linear_conv_kernel_dim},
          TensorClass::kTextOther);
  out.add(prefix + "A_log", {heads}, TensorClass::kTextOther, true);
  out.add(prefix + "dt_bias", {heads}, TensorClass::kTextOther, true);
  out.add(prefix + "norm.weight", {config.linear_value_head_dim}, TensorClass::kTextOther, true);
}

void add_full_attention(Collector& out, const std::string& prefix, const TextConfig& config) {
  const auto linear = [&](const char* name, std::size_t rows, std::size_t columns) {
    out.add(prefix + name + ".weight", {rows, columns}, TensorClass::kTextLinear);
  };
  linear("q_proj", 2 * config.query_dim(), config.hidden_size);  // Query and gate.
  linear("k_proj", config.kv_dim(), config.hidden_size);
  linear("v_proj", config.kv_dim(), config.hidden_size);
  linear("o_proj", config.hidden_size, config.query_dim());
  out.add(prefix + "q_norm.weight", {config.head_dim}, TensorClass::kTextOther, true);
  out.add(prefix + "k_norm.weight", {config.head_dim}, TensorClass::kTextOther, true);
}

void add_text(Collector& out, const TextConfig& config) {
  const Shape table{config.vocab_size, config.hidden_size};
  out.add("model.language_model.embed_tokens.weight", table, TensorClass::kEmbedding);
  if (!config.tie_word_embeddings) out.add("lm_head.weight", table, TensorClass::kEmbedding);
  out.add("model.language_model.norm.weight", {config.hidden_size}, TensorClass::kEmbedding, true);
  for (std::size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string prefix = text_layer_prefix(layer);
    for (const char* norm : {"input_layernorm.weight", "post_attention_layernorm.weight"}) {
      out.add(prefix + norm, {config.hidden_size}, TensorClass::kTextOther, true);
    }
    if (config.layer_types[layer] == LayerType::kLinearAttention) {
      add_linear_attention(out, prefix + "linear_attn.", config);
    } else {
      add_full_attention(out, prefix + "self_attn.", config);
    }
    const std::string mlp = prefix + "mlp.";
    const Shape widening{config.intermediate_size, config.hidden_size};
    out.add(mlp + "gate_proj.weight", widening, TensorClass::kTextLinear);
    out.add(mlp + "up_proj.weight", widening, TensorClass::kTextLinear);
    out.add(mlp + "down_proj.weight", {config.hidden_size, config.intermediate_size},
            TensorClass::kTextLinear);
  }
}

void add_vision(Collector& out, const VisionConfig& config) {
  constexpr TensorClass kKind = TensorClass::kVision;
  const std::string prefix = "model.visual.";
  const std::size_t width = config.hidden_size;
  out.add(
      prefix + "patch_embed.proj.weight",
      {width, config.in_channels, config.temporal_patch_size, config.patch_size, config.patch_size},
      kKind);
  out.add(prefix + "patch_embed.proj.bias", {width}, kKind);
  out.add(prefix + "pos_embed.weight", {config.num_position_embeddings, width}, kKind);
  for (std::size_t index = 0; index < config.depth; ++index) {
    const std::string block = vision_block_prefix(index);
    out.add_layer_norm(block + "norm1", width, kKind);
    out.add_layer_norm(block + "norm2", width, kKind);
    out.add_linear(block + "attn.qkv", 3 * width, width, kKind);
    out.add_linear(block + "attn.proj", width, width, kKind);
    out.add_linear(block + "mlp.linear_fc1", config.intermediate_size, width, kKind);
    out.add_linear(block + "mlp.linear_fc2", width, config.intermediate_size, kKind);
  }
  const std::size_t merged = config.merged_size();
  out.add_layer_norm(prefix + "merger.norm", width, kKind);
  out.add_linear(prefix + "merger.linear_fc1", merged, merged, kKind);
  out.add_linear(prefix + "merger.linear_fc2", config.out_hidden_size, merged, kKind);
}

void add_head_attention(Collector& out, const std::string& prefix, std::size_t width) {
  out.add(prefix + ".in_proj_weight", {3 * width, width}, TensorClass::kHead);
  out.add(prefix + ".in_proj_bias", {3 * width}, TensorClass::kHead);
  out.add_linear(prefix + ".out_proj", width, width, TensorClass::kHead);
}

void add_head(Collector& out, const HeadConfig& config) {
  constexpr TensorClass kKind = TensorClass::kHead;
  const std::size_t width = config.width;
  out.add_layer_norm("hidden_norm", config.hidden_size, kKind);
  for (const char* name :
       {"memory", "question", "option_question", "global", "option_context", "option_lexical"}) {
    out.add(fmt::format("{}_projection.weight", name), {width, config.hidden_size}, kKind);
  }
  out.add("type_embedding.weight", {3, width}, kKind);
  for (std::size_t index = 0; index < config.routing_layers; ++index) {
    const std::string layer = fmt::format("evidence_layers.{}.", index);
    for (const char* norm : {"query_norm", "memory_norm", "feedforward_norm"}) {
      out.add_layer_norm(layer + norm, width, kKind);
    }
    add_head_attention(out, layer + "attention", width);
    out.add_linear(layer + "feedforward.0", config.feedforward, width, kKind);
    out.add_linear(layer + "feedforward.3", width, config.feedforward, kKind);
  }
  for (const char* norm : {"option_summary_norm", "field_norm", "option_norm"}) {
    out.add_layer_norm(norm, width, kKind);
  }
  for (std::size_t index = 0; index < config.layers; ++index) {
    const std::string layer = fmt::format("layers.{}.", index);
    add_head_attention(out, layer + "self_attn", width);
    add_head_attention(out, layer + "multihead_attn", width);
    out.add_linear(layer + "linear1", config.feedforward, width, kKind);
    out.add_linear(layer + "linear2", width, config.feedforward, kKind);
    for (const char* norm : {"norm1", "norm2", "norm3"}) {
      out.add_layer_norm(layer + norm, width, kKind);
    }
  }
  // The scorer reads field, option, their product and their distance side by side.
  out.add_linear("residual_scorer.0", width, 4 * width, kKind);
  out.add_linear("residual_scorer.3", 1, width, kKind);
  for (const char* scalar : {"prior_logit_scale", "joint_logit_scale", "residual_gate"}) {
    out.add(scalar, {}, kKind);
  }
}

// Runs of digits compare as numbers, all else as bytes.
bool natural_less(const std::string& left, const std::string& right) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() && j < right.size()) {
    if (is_digit(left[i]) && is_digit(right[j])) {
      std::size_t used_left = 0;
      std::size_t used_right = 0;
      const auto number_left = std::stoull(left.substr(i), &used_left);
      const auto number_right = std::stoull(right.substr(j), &used_right);
      if (number_left != number_right) return number_left < number_right;
      i += used_left;
      j += used_right;
    } else if (left[i] != right[j]) {
      return left[i] < right[j];
    } else {
      ++i;
      ++j;
    }
  }
  return left.size() - i < right.size() - j;
}

}  // namespace

std::size_t PlannedTensor::element_count() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::vector<PlannedTensor> plan_tensors(const ModelConfig& config) {
  std::vector<PlannedTensor> tensors;
  Collector backbone(tensors, TensorFile::kBackbone);
  add_text(backbone, config.text);
  if (config.has_vision()) add_vision(backbone, config.vision);
  Collector head(tensors, TensorFile::kJointHead);
  add_head(head, config.head);
  std::sort(tensors.begin(), tensors.end(),
            [](const PlannedTensor& left, const PlannedTensor& right) {
              if (left.file != right.file) return left.file < right.file;
              return natural_less(left.name, right.name);
            });
  return tensors;
}

std::string text_layer_prefix(std::size_t layer) {
  return fmt::format("model.language_model.layers.{}.", layer);
}

std::string vision_block_prefix(std::size_t block) {
  return fmt::format("model.visual.blocks.{}.", block);
}

}  // namespace clefkit
