#include "clefkit/programs/vision_block_program.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "clefkit/model/tensor_plan.h"
#include "clefkit/programs/attention.h"
#include "clefkit/programs/layer_norm.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;

using mil::dim;

class Emitter {
 public:
  Emitter(const VisionConfig& config, std::size_t block, const FindWeight& find_weight,
          const VisionBlockOptions& options)
      : config_(config),
        block_(block),
        find_weight_(find_weight),
        options_(options),
        builder_(options.weight_path, options.spellings) {}

  mil::Program emit() {
    const std::int64_t patches = options_.patches, half = dim(config_.head_dim() / 2);
    Name x = builder_.input("x", {1, dim(config_.hidden_size), 1, patches});
    cos_ = builder_.input("cos", {1, half, 1, patches});
    sin_ = builder_.input("sin", {1, half, 1, patches});
    mask_ = builder_.input("mask", {1, 1, patches, patches});
    const Name attended = attention(norm(x, "norm1"));
    x = builder_.binary("add", x, attended, part("x"));
    const Name changed = mlp(norm(x, "norm2"));
    builder_.output(builder_.binary("add", x, changed, part("out")), "x_out");
    return std::move(builder_).finish();
  }

 private:
  std::string part(std::string_view name) const {
    return fmt::format("vision_{:02}_{}", block_, name);
  }
  const BlobWeight& weight(std::string_view name, std::string_view kind) const {
    return find_weight_(fmt::format("{}{}.{}", vision_block_prefix(block_), name, kind));
  }

  Name norm(const Name& x, std::string_view name) {
    return emit_layer_norm(builder_, x, weight(name, "weight"), weight(name, "bias"),
                           VisionConfig::kLayerNormEps, part(name));
  }

  // The bias as an addition: some compilers refuse it as an argument (ane.md 3.2).
  Name linear(const Name& x, std::string_view name, std::string_view hint) {
    const Name product =
        builder_.linear(x, weight(name, "weight"), part(fmt::format("{}_product", hint)));
    const std::int64_t channels = builder_.type(product).shape.at(1);
    const Name bias = builder_.weight(weight(name, "bias"), {1, channels, 1, 1});
    return builder_.binary("add", product, bias, part(hint));
  }

  Name rotated_heads(const Name& x, const char* hint) {
    const Name heads =
        builder_.reshape(x, {dim(config_.num_heads), dim(config_.head_dim()), 1, options_.patches},
                         part(fmt::format("{}_by_head", hint)));
    return emit_rotated(builder_, heads, cos_, sin_, part(hint));
  }

  Name attention(const Name& normed) {
    const std::int64_t heads = dim(config_.num_heads), head_dim = dim(config_.head_dim());
    const mil::Shape grouped{heads, 1, head_dim, options_.patches};
    const auto qkv =
        builder_.split(linear(normed, "attn.qkv", "qkv"), 1, std::int64_t{3}, part("qkv_parts"));
    const Name query = rotated_heads(qkv[0], "q");
    const Name scale =
        builder_.scalar(1 / std::sqrt(static_cast<double>(head_dim)), part("score_scale"));
    const Name scaled_query = builder_.binary("mul", query, scale, part("q_scaled"));
    const Name key = rotated_heads(qkv[1], "k");
    const Name queries = builder_.reshape(scaled_query, grouped, part("q_grouped"));
    const Name keys = builder_.reshape(key, grouped, part("k_grouped"));
    const Name values = builder_.reshape(qkv[2], grouped, part("v_grouped"));
    const Name attended = emit_attention(
        builder_, {.queries = queries, .keys = keys, .values = values, .mask = mask_},
        fmt::format("vision_{:02}", block_));
    const Name together = builder_.reshape(
        attended, {1, dim(config_.hidden_size), 1, options_.patches}, part("together"));
    return linear(together, "attn.proj", "proj");
  }

  Name mlp(const Name& normed) {
    const Name inner = builder_.gelu_tanh(linear(normed, "mlp.linear_fc1", "fc1"), part("gelu"));
    return linear(inner, "mlp.linear_fc2", "fc2");
  }

  const VisionConfig& config_;
  const std::size_t block_;
  const FindWeight& find_weight_;
  const VisionBlockOptions& options_;
  ProgramBuilder builder_;
  Name cos_, sin_, mask_;
};

}  // namespace

mil::Program emit_vision_block(const VisionConfig& config, std::size_t block,
                               const FindWeight& find_weight, const VisionBlockOptions& options) {
  return Emitter(config, block, find_weight, options).emit();
}

}  // namespace clefkit
