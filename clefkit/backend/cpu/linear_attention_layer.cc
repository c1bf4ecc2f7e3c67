#include "clefkit/backend/cpu/linear_attention_layer.h"

#include <array>
#include <cmath>

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit::cpu {
namespace {

constexpr float kL2NormEps = 1e-6f;

}  // namespace

LinearAttentionLayer::LinearAttentionLayer(const Model& model, const std::string& prefix,
                                           Precision precision)
    : shape_{.key_heads = model.config.text.linear_num_key_heads,
             .value_heads = model.config.text.linear_num_value_heads,
             .key_head_dim = model.config.text.linear_key_head_dim,
             .value_head_dim = model.config.text.linear_value_head_dim},
      conv_kernel_(model.config.text.linear_conv_kernel_dim),
      norm_eps_(model.config.text.rms_norm_eps) {
  const TextConfig& config = model.config.text;
  const std::string name = prefix + "linear_attn.";
  const auto linear = [&](const char* projection, std::size_t out, std::size_t in) {
    return linear_layer(model, name + projection + ".weight", out, in, precision);
  };
  in_proj_qkv_ = linear("in_proj_qkv", config.conv_channels(), config.hidden_size);
  in_proj_z_ = linear("in_proj_z", config.value_dim(), config.hidden_size);
  in_proj_a_ = linear("in_proj_a", shape_.value_heads, config.hidden_size);
  in_proj_b_ = linear("in_proj_b", shape_.value_heads, config.hidden_size);
  out_proj_ = linear("out_proj", config.hidden_size, config.value_dim());
  conv_weight_ = float_values(model, name + "conv1d.weight",
                              std::array{config.conv_channels(), std::size_t{1}, conv_kernel_});
  decay_ = float_vector(model, name + "A_log", shape_.value_heads);
  for (float& value : decay_) value = -std::exp(value);
  dt_bias_ = float_vector(model, name + "dt_bias", shape_.value_heads);
  norm_weight_ = float_vector(model, name + "norm.weight", shape_.value_head_dim);
}

void LinearAttentionLayer::compute_gates(const ComputeContext& context, MatrixView<float> a,
                                         MatrixView<float> b) const {
  context.parallel_for(a.rows, [&](std::size_t token, std::size_t) {
    const std::span<float> g = a.row(token), beta = b.row(token);
    for (std::size_t head = 0; head < g.size(); ++head) {
      g[head] = decay_[head] * softplus(g[head] + dt_bias_[head]);
      beta[head] = sigmoid(beta[head]);
    }
  });
}

void LinearAttentionLayer::forward(const ComputeContext& context, MatrixView<const float> x,
                                   LinearAttentionState& state, Workspace& workspace,
                                   MatrixView<float> out) const {
  const Workspace::Scope scope(workspace);
  const std::size_t tokens = x.rows;
  const std::size_t key_dim = shape_.key_heads * shape_.key_head_dim;
  const std::size_t value_dim = shape_.value_heads * shape_.value_head_dim;
  const std::size_t channels = 2 * key_dim + value_dim;

  const MatrixView<float> z = workspace.matrix(tokens, value_dim);
  const MatrixView<float> g = workspace.matrix(tokens, shape_.value_heads);
  const MatrixView<float> beta = workspace.matrix(tokens, shape_.value_heads);
  const MatrixView<float> mixed = workspace.matrix(tokens, channels);
  const MatrixView<float> qkv = workspace.matrix(tokens, channels);

  const std::array inputs{LinearOutput{&in_proj_qkv_, mixed}, LinearOutput{&in_proj_z_, z},
                          LinearOutput{&in_proj_a_, g}, LinearOutput{&in_proj_b_, beta}};
  apply_linears(context, x, inputs);
  causal_conv_silu(context, mixed, {conv_weight_.data(), channels, conv_kernel_}, state.conv_state,
                   qkv);
  compute_gates(context, g, beta);

  const MatrixView<float> q = qkv.columns_from(0, key_dim);
  const MatrixView<float> k = qkv.columns_from(key_dim, key_dim);
  const MatrixView<float> v = qkv.columns_from(2 * key_dim, value_dim);
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(shape_.key_head_dim));
  l2_normalize_heads(context, q, shape_.key_head_dim, kL2NormEps, q_scale);
  l2_normalize_heads(context, k, shape_.key_head_dim, kL2NormEps, 1.0f);

  // The convolution's input is used up, and at least as large as what comes out of the rule.
  const MatrixView<float> read(mixed.data, tokens, value_dim);
  delta_rule(context, shape_, {.q = q, .k = k, .v = v, .beta = beta, .g = g}, state.recurrent_state,
             read);

  const MatrixView<float> heads(read.data, tokens * shape_.value_heads, shape_.value_head_dim);
  rms_norm(context, heads, norm_weight_, norm_eps_, heads);
  silu_multiply(context, z, read);
  out_proj_.apply(context, z, out);
}

}  // namespace clefkit::cpu
