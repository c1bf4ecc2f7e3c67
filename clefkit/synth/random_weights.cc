#include "clefkit/synth/random_weights.h"

#include <algorithm>
#include <cmath>

namespace clefkit {
namespace {

// Deviations of the two token tables. The head normalises lm_head rows before it compares them and
// projects them with option_lexical_projection, whose scale makes up for their size.
constexpr double kEmbeddingDeviation = 0.5;
constexpr double kHeadTableDeviation = 0.02;
constexpr double kNormDeviation = 0.1;
constexpr double kBiasDeviation = 0.05;

Distribution normal(double mean, double deviation) {
  return {Distribution::Kind::kNormal, mean, deviation};
}

// Scaled so that inputs of order one give outputs of order `gain`.
Distribution linear(const TensorInfo& tensor, double gain) {
  std::size_t inputs = 1;
  for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) inputs *= tensor.shape[axis];
  return normal(0, gain / std::sqrt(static_cast<double>(inputs)));
}

// The gain of a layer's last projection: two of them a layer add up to a sum of order `scale`.
double branch_gain(std::size_t layers, double scale) {
  return scale / std::sqrt(2.0 * static_cast<double>(layers));
}

// The logarithm of what a cosine of two vectors is multiplied with: it falls with the root of their
// size, and logits should not. The head allows at most ln 100.
double cosine_scale(std::size_t size) {
  return std::log(std::clamp(2 * std::sqrt(static_cast<double>(size)), 20.0, 90.0));
}

Distribution text_distribution(const TensorInfo& tensor, const TextConfig& text) {
  const std::string_view name = tensor.name;
  const std::size_t layers = text.num_hidden_layers;
  if (name.ends_with("embed_tokens.weight")) return normal(0, kEmbeddingDeviation);
  if (name == "lm_head.weight") return normal(0, kHeadTableDeviation);
  if (name.ends_with("A_log")) return {Distribution::Kind::kLogUniformDecay, 0, 0};
  if (name.ends_with("dt_bias")) return {Distribution::Kind::kTimeStep, 0, 0};
  if (name.ends_with("linear_attn.norm.weight")) return normal(1, kNormDeviation);
  // Sharpens attention: the scores of a random query get a deviation of about 2 instead of 1.
  if (name.ends_with("q_norm.weight") || name.ends_with("k_norm.weight")) {
    return normal(0.4, kNormDeviation);
  }
  if (name.ends_with("norm.weight")) return normal(0, kNormDeviation);  // Stored zero-centred.
  if (name.ends_with("in_proj_a.weight")) return linear(tensor, 0.5);
  // The gains undo what SiLU, the gates and the averaging of attention take away.
  if (name.ends_with("out_proj.weight")) return linear(tensor, branch_gain(layers, 1.5));
  if (name.ends_with("o_proj.weight")) return linear(tensor, branch_gain(layers, 3.0));
  if (name.ends_with("down_proj.weight")) return linear(tensor, branch_gain(layers, 1.6));
  return linear(tensor, 1);
}

Distribution vision_distribution(const TensorInfo& tensor, const VisionConfig& vision) {
  const std::string_view name = tensor.name;
  if (name.ends_with("bias")) return normal(0, kBiasDeviation);
  if (name.ends_with("pos_embed.weight")) return normal(0, 0.3);
  if (name.find("norm") != std::string_view::npos) return normal(1, kNormDeviation);
  if (name.ends_with("qkv.weight")) return linear(tensor, 1.4);
  if (name.ends_with("attn.proj.weight")) return linear(tensor, branch_gain(vision.depth, 3.0));
  if (name.ends_with("merger.linear_fc1.weight")) return linear(tensor, 1);
  // Features take the place of embeddings, so they are as large; 0.65 is what GELU leaves.
  if (name.ends_with("merger.linear_fc2.weight")) {
    return linear(tensor, kEmbeddingDeviation / 0.65);
  }
  if (name.ends_with("linear_fc2.weight")) return linear(tensor, branch_gain(vision.depth, 1.6));
  return linear(tensor, 1);
}

Distribution head_distribution(const TensorInfo& tensor, const ModelConfig& config) {
  const std::string_view name = tensor.name;
  if (name == "prior_logit_scale") return normal(cosine_scale(config.text.hidden_size), 0);
  if (name == "joint_logit_scale") return normal(cosine_scale(config.head.width), 0);
  if (name == "residual_gate") return normal(0, 0);  // A half, behind the sigmoid.
  if (name.ends_with("bias")) return normal(0, kBiasDeviation);
  if (name == "type_embedding.weight") return normal(0, 0.5);
  if (name.find("norm") != std::string_view::npos) return normal(1, kNormDeviation);
  if (name == "option_lexical_projection.weight") {
    const bool tied = config.text.tie_word_embeddings;
    return linear(tensor, 0.5 / (tied ? kEmbeddingDeviation : kHeadTableDeviation));
  }
  if (name.ends_with("in_proj_weight")) return linear(tensor, 1.4);
  if (name == "residual_scorer.3.weight") return linear(tensor, 3);
  return linear(tensor, 1);
}

// Peter Acklam's rational approximation of the normal quantile function, relative error 1.2e-9.
double normal_quantile(double p) {
  constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                           6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                           3.754408661907416e+00};
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((kC[0] * q + kC[1]) * q + kC[2]) * q + kC[3]) * q + kC[4]) * q + kC[5]) /
           ((((kD[0] * q + kD[1]) * q + kD[2]) * q + kD[3]) * q + 1);
  }
  const double q = p - 0.5;
  const double r = q * q;
  return (((((kA[0] * r + kA[1]) * r + kA[2]) * r + kA[3]) * r + kA[4]) * r + kA[5]) * q /
         (((((kB[0] * r + kB[1]) * r + kB[2]) * r + kB[3]) * r + kB[4]) * r + 1);
}

double quantile(const Distribution& distribution, double p) {
  switch (distribution.kind) {
    case Distribution::Kind::kNormal:
      return distribution.mean + distribution.deviation * normal_quantile(p);
    case Distribution::Kind::kLogUniformDecay:
      return std::log(1 + 15 * p);
    case Distribution::Kind::kTimeStep:
      // The inverse of softplus.
      return std::log(std::expm1(0.001 * std::pow(100.0, p)));
  }
  return 0;
}

// The output function of SplitMix64: a bijection that turns a counter into random bits.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

Distribution distribution_of(const TensorInfo& tensor, const ModelConfig& config) {
  const std::string_view name = tensor.name;
  if (name.starts_with("model.visual.")) return vision_distribution(tensor, config.vision);
  if (name.starts_with("model.language_model.") || name == "lm_head.weight") {
    return text_distribution(tensor, config.text);
  }
  return head_distribution(tensor, config);
}

QuantileTable::QuantileTable(const Distribution& distribution) {
  values_.reserve(kSize);
  for (std::size_t index = 0; index < kSize; ++index) {
    const double p = (static_cast<double>(index) + 0.5) / static_cast<double>(kSize);
    values_.push_back(to_bfloat16(static_cast<float>(quantile(distribution, p))));
  }
}

void fill_block(const QuantileTable& table, std::uint64_t seed, std::string_view tensor_name,
                std::uint64_t block, std::span<BFloat16> out) {
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15u;
  constexpr std::size_t kDrawsPerCount = 4;
  const std::uint64_t key = mix(mix(mix(seed + kGoldenRatio) ^ hash_of(tensor_name)) + block);
  std::size_t index = 0;
  for (std::uint64_t count = 1; index < out.size(); ++count) {
    std::uint64_t bits = mix(key + count * kGoldenRatio);
    const std::size_t end = std::min(index + kDrawsPerCount, out.size());
    for (; index < end; ++index, bits >>= 16) out[index] = table[static_cast<std::uint16_t>(bits)];
  }
}

}  // namespace clefkit
