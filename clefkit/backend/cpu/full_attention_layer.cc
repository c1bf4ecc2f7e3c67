#include "clefkit/backend/cpu/full_attention_layer.h"

#include <array>
#include <cmath>

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit::cpu {

FullAttentionLayer::FullAttentionLayer(const Model& model, const std::string& prefix,
                                       Precision precision)
    : shape_{.query_heads = model.config.text.num_attention_heads,
             .kv_heads = model.config.text.num_key_value_heads,
             .head_dim = model.config.text.head_dim,
             .scale = 1.0f / std::sqrt(static_cast<float>(model.config.text.head_dim))},
      norm_eps_(model.config.text.rms_norm_eps) {
  const TextConfig& config = model.config.text;
  const std::string name = prefix + "self_attn.";
  const auto linear = [&](const char* projection, std::size_t out, std::size_t in) {
    return linear_layer(model, name + projection + ".weight", out, in, precision);
  };
  q_proj_ = linear("q_proj", 2 * config.query_dim(), config.hidden_size);
  k_proj_ = linear("k_proj", config.kv_dim(), config.hidden_size);
  v_proj_ = linear("v_proj", config.kv_dim(), config.hidden_size);
  o_proj_ = linear("o_proj", config.hidden_size, config.query_dim());
  q_norm_ = norm_multiplier(model, name + "q_norm.weight", config.head_dim);
  k_norm_ = norm_multiplier(model, name + "k_norm.weight", config.head_dim);
}

void FullAttentionLayer::forward(const ComputeContext& context, MatrixView<const float> x,
                                 const RotaryTable& rotary, std::size_t past, KvCache& cache,
                                 Workspace& workspace, MatrixView<float> out) const {
  const Workspace::Scope scope(workspace);
  const std::size_t tokens = x.rows, head_dim = shape_.head_dim;
  const std::size_t query_dim = shape_.query_heads * head_dim;
  const MatrixView<float> keys = cache.keys(past + tokens), values = cache.values(past + tokens);
  const MatrixView<float> new_keys = keys.rows_from(past, tokens);
  const MatrixView<float> new_values = values.rows_from(past, tokens);

  // Each head of q_proj's output is its query, then its gate; the norm puts the queries together.
  const MatrixView<float> query_and_gate = workspace.matrix(tokens, 2 * query_dim);
  const MatrixView<float> q = workspace.matrix(tokens, query_dim);
  const MatrixView<float> attended = workspace.matrix(tokens, query_dim);
  const std::size_t query_rows = tokens * shape_.query_heads;
  const MatrixView<float> queries(query_and_gate.data, query_rows, head_dim, 2 * head_dim);
  const MatrixView<float> gates(query_and_gate.data + head_dim, query_rows, head_dim, 2 * head_dim);
  const MatrixView<float> key_heads(new_keys.data, tokens * shape_.kv_heads, head_dim);

  const std::array inputs{LinearOutput{&q_proj_, query_and_gate}, LinearOutput{&k_proj_, new_keys},
                          LinearOutput{&v_proj_, new_values}};
  apply_linears(context, x, inputs);
  rms_norm(context, queries, q_norm_, norm_eps_, {q.data, query_rows, head_dim});
  rms_norm(context, key_heads, k_norm_, norm_eps_, key_heads);
  apply_rotary(context, q, shape_.query_heads, head_dim, rotary.cosines, rotary.sines);
  apply_rotary(context, new_keys, shape_.kv_heads, head_dim, rotary.cosines, rotary.sines);

  causal_attention(context, shape_, q, keys, values, attended);
  sigmoid_multiply(context, {attended.data, query_rows, head_dim}, gates);
  o_proj_.apply(context, attended, out);
}

}  // namespace clefkit::cpu
