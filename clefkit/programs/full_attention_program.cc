#include "clefkit/programs/full_attention_program.h"

#include <fmt/format.h>

#include <cmath>

#include "clefkit/model/tensor_plan.h"
#include "clefkit/programs/attention.h"
#include "clefkit/programs/rms_norm.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;
using mil::dim;

}  // namespace

FullAttentionOutput emit_full_attention(ProgramBuilder& builder, const FullAttentionInput& input,
                                        const TextConfig& config, std::size_t layer,
                                        const FindWeight& find_weight) {
  const std::string prefix = text_layer_prefix(layer);
  const auto part = [&](const char* name) { return fmt::format("full_{:02}_{}", layer, name); };
  const auto weight = [&](const char* name) -> const BlobWeight& {
    return find_weight(prefix + name);
  };
  const std::int64_t tokens = builder.type(input.x).shape.at(3);
  const std::int64_t places = builder.type(input.mask).shape.at(3);
  const std::int64_t heads = dim(config.num_attention_heads);
  const std::int64_t kv_heads = dim(config.num_key_value_heads);
  const std::int64_t head_dim = dim(config.head_dim);
  const std::int64_t kv_dim = dim(config.kv_dim());

  const Name normed = emit_rms_norm(builder, input.x, weight("input_layernorm.weight"),
                                    config.rms_norm_eps, part("norm"));
  const Name query_and_gate =
      builder.reshape(builder.linear(normed, weight("self_attn.q_proj.weight"), part("q_proj")),
                      {heads, 2 * head_dim, 1, tokens}, part("q_by_head"));
  const auto halves = builder.split(query_and_gate, 1, std::int64_t{2}, part("query_gate"));
  const Name query =
      emit_rotated(builder,
                   emit_rms_norm(builder, halves[0], weight("self_attn.q_norm.weight"),
                                 config.rms_norm_eps, part("q_norm")),
                   input.cos, input.sin, part("q"));
  const Name scaled_query = builder.binary(
      "mul", query,
      builder.scalar(1 / std::sqrt(static_cast<double>(head_dim)), part("score_scale")),
      part("q_scaled"));

  const Name key_heads =
      builder.reshape(builder.linear(normed, weight("self_attn.k_proj.weight"), part("k_proj")),
                      {kv_heads, head_dim, 1, tokens}, part("k_by_head"));
  const Name key = builder.reshape(
      emit_rotated(builder,
                   emit_rms_norm(builder, key_heads, weight("self_attn.k_norm.weight"),
                                 config.rms_norm_eps, part("k_norm")),
                   input.cos, input.sin, part("k")),
      {1, kv_dim, 1, tokens}, part("k_new"));
  const Name value = builder.linear(normed, weight("self_attn.v_proj.weight"), part("v_new"));

  // [kv_heads, queries of one, S, places]
  const Name queries = builder.reshape(scaled_query, {kv_heads, heads / kv_heads, head_dim, tokens},
                                       part("q_grouped"));
  const Name keys = builder.reshape(builder.concat({input.k_cache, key}, 3, part("k_all")),
                                    {kv_heads, 1, head_dim, places}, part("k_grouped"));
  const Name values = builder.reshape(builder.concat({input.v_cache, value}, 3, part("v_all")),
                                      {kv_heads, 1, head_dim, places}, part("v_grouped"));
  const Name attended = emit_attention(
      builder, {.queries = queries, .keys = keys, .values = values, .mask = input.mask},
      fmt::format("full_{:02}", layer));

  const Name by_head =
      builder.reshape(attended, {heads, head_dim, 1, tokens}, part("attended_by_head"));
  const Name gated =
      builder.binary("mul", by_head, builder.sigmoid(halves[1], part("gate")), part("gated"));
  const Name together = builder.reshape(gated, {1, heads * head_dim, 1, tokens}, part("together"));
  const Name out = builder.linear(together, weight("self_attn.o_proj.weight"), part("o"));
  return {builder.binary("add", input.x, out, part("x")), key, value};
}

}  // namespace clefkit
