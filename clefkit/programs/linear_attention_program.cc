#include "clefkit/programs/linear_attention_program.h"

#include <fmt/format.h>

#include <cmath>

#include "clefkit/model/tensor_plan.h"
#include "clefkit/programs/delta_rule.h"
#include "clefkit/programs/rms_norm.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;

constexpr double kL2NormEps = 1e-6;

using mil::dim;

// x / sqrt(sum of x² + eps) · scale for each head: by the mean of the squares, whose eps is that of
// the sum over their number.
Name l2_normalized(ProgramBuilder& builder, const Name& x, std::size_t heads, std::size_t head_dim,
                   double scale, std::string_view hint) {
  const mil::Shape shape = builder.type(x).shape;
  const auto size = static_cast<double>(head_dim);
  const Name apart = builder.reshape(x, {dim(heads), dim(head_dim), 1, shape[3]}, hint);
  const Name normed = emit_normalized(builder, apart, kL2NormEps / size, hint);
  const Name scaled = builder.binary(
      "mul", normed, builder.scalar(scale / std::sqrt(size), fmt::format("{}_scale", hint)), hint);
  return builder.reshape(scaled, shape, hint);
}

}  // namespace

LinearAttentionOutput emit_linear_attention(ProgramBuilder& builder,
                                            const LinearAttentionInput& input,
                                            const TextConfig& config, std::size_t layer,
                                            const FindWeight& find_weight) {
  const std::string prefix = text_layer_prefix(layer);
  const auto part = [&](const char* name) { return fmt::format("linear_{:02}_{}", layer, name); };
  const auto weight = [&](const char* name) -> const BlobWeight& {
    return find_weight(prefix + name);
  };
  const std::int64_t tokens = builder.type(input.x).shape.at(3);
  const std::int64_t channels = dim(config.conv_channels());
  const std::int64_t heads = dim(config.linear_num_value_heads);
  const std::int64_t kernel = dim(config.linear_conv_kernel_dim);

  const Name normed = emit_rms_norm(builder, input.x, weight("input_layernorm.weight"),
                                    config.rms_norm_eps, part("norm"));
  const Name mixed = builder.linear(normed, weight("linear_attn.in_proj_qkv.weight"), part("qkv"));
  const Name z = builder.linear(normed, weight("linear_attn.in_proj_z.weight"), part("z"));
  const Name a = builder.linear(normed, weight("linear_attn.in_proj_a.weight"), part("a"));
  const Name b = builder.linear(normed, weight("linear_attn.in_proj_b.weight"), part("b"));

  // The causal convolution, with the tokens before in front.
  const Name with_past = builder.concat({input.conv_state, mixed}, 3, part("with_past"));
  const Name convolved = builder.conv(
      with_past, builder.weight(weight("linear_attn.conv1d.weight"), {channels, 1, 1, kernel}),
      part("convolved"), channels);
  const auto qkv = builder.split(
      builder.silu(convolved, part("mixed")), 1,
      {dim(config.key_dim()), dim(config.key_dim()), dim(config.value_dim())}, part("split"));
  const Name conv_state = builder.matmul(with_past, input.conv_select, part("conv_state"));

  const Name biased = builder.binary(
      "add", a, builder.weight(weight("linear_attn.dt_bias"), {1, heads, 1, 1}), part("a_biased"));
  const Name rate = builder.unary(
      "exp", builder.weight(weight("linear_attn.A_log"), {1, heads, 1, 1}), part("rate"));
  const Name decay =
      builder.binary("mul", builder.softplus(biased, part("softplus")), rate, part("decay"));
  const Name minus_valid =
      builder.binary("mul", input.valid, builder.scalar(-1, "minus_one"), part("minus_valid"));
  const Name g = builder.binary("mul", decay, minus_valid, part("g"));
  const Name beta =
      builder.binary("mul", builder.sigmoid(b, part("sigmoid")), input.valid, part("beta"));

  const double q_scale = 1 / std::sqrt(static_cast<double>(config.linear_key_head_dim));
  const DeltaRuleOutput rule =
      emit_delta_rule(builder,
                      {dim(config.linear_num_key_heads), heads, dim(config.linear_key_head_dim),
                       dim(config.linear_value_head_dim)},
                      {.q = l2_normalized(builder, qkv[0], config.linear_num_key_heads,
                                          config.linear_key_head_dim, q_scale, part("q")),
                       .k = l2_normalized(builder, qkv[1], config.linear_num_key_heads,
                                          config.linear_key_head_dim, 1, part("k")),
                       .v = qkv[2],
                       .g = g,
                       .beta = beta,
                       .state = input.recurrent_state},
                      part("rule"));

  const std::int64_t head_dim = dim(config.linear_value_head_dim);
  const Name by_head = builder.reshape(rule.o, {heads, head_dim, 1, tokens}, part("o"));
  const Name normed_o = emit_normalized(builder, by_head, config.rms_norm_eps, part("o_norm"));
  const Name weighted = builder.binary(
      "mul", normed_o, builder.weight(weight("linear_attn.norm.weight"), {1, head_dim, 1, 1}),
      part("o_weighted"));
  const Name together =
      builder.reshape(weighted, {1, heads * head_dim, 1, tokens}, part("o_together"));
  const Name gated =
      builder.binary("mul", together, builder.silu(z, part("gate")), part("o_gated"));
  const Name out = builder.linear(gated, weight("linear_attn.out_proj.weight"), part("out"));
  return {builder.binary("add", input.x, out, part("x")), conv_state, rule.state};
}

}  // namespace clefkit
