#include "clefkit/engine/head_layers.h"

#include <cmath>
#include <span>

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
FloatMatrix HeadLayerNorm::operator()(const ComputeContext& context, const FloatMatrix& x) const {
  FloatMatrix out(x.rows(), x.columns());
  apply(context, x.view(), out.view());
  return out;
}

HeadAttention::HeadAttention(const Model& model, const std::string& name, std::size_t width,
                             std::size_t heads)
    : shape_{.query_heads = heads,
             .kv_heads = heads,
             .head_dim = width / heads,
             .scale = 1.0f / std::sqrt(static_cast<float>(width / heads))},
      out_(linear_layer_with_bias(model, name + ".out_proj", width, width)) {
  // The rows of in_proj are query, key and value thirds.
  const WeightMatrix weight = weight_matrix(model, name + ".in_proj_weight", 3 * width, width);
  const std::vector<float> bias = float_vector(model, name + ".in_proj_bias", 3 * width);
  const std::span<const float> biases(bias);
  query_ = Linear(weight_rows(weight, 0, width), biases.first(width));
  key_value_ = Linear(weight_rows(weight, width, 2 * width), biases.subspan(width));
}

void HeadAttention::project_memory(const ComputeContext& context, MatrixView<const float> memory,
                                   MatrixView<float> keys_values) const {
  key_value_.apply(context, memory, keys_values);
}

FloatMatrix HeadAttention::attend(const ComputeContext& context, const FloatMatrix& x,
                                  const FloatMatrix& keys_values) const {
  const std::size_t width = x.columns();
  const MatrixView<const float> keys = keys_values.view().columns_from(0, width);
  const MatrixView<const float> values = keys_values.view().columns_from(width, width);
  const FloatMatrix queries = apply_linear(context, query_, x);
  FloatMatrix attended(x.rows(), width);
  full_attention(context, shape_, queries.view(), keys, values, attended.view());
  return apply_linear(context, out_, attended);
}

HeadFeedForward::HeadFeedForward(const Model& model, const std::string& first,
                                 const std::string& second, std::size_t in, std::size_t hidden,
                                 std::size_t out)
    : first_(linear_layer_with_bias(model, first, hidden, in)),
      second_(linear_layer_with_bias(model, second, out, hidden)) {}

FloatMatrix HeadFeedForward::operator()(const ComputeContext& context, const FloatMatrix& x) const {
  FloatMatrix hidden = apply_linear(context, first_, x);
  gelu_erf(context, hidden.view());
  return apply_linear(context, second_, hidden);
}

FloatMatrix apply_linear(const ComputeContext& context, const Linear& linear,
                         const FloatMatrix& x) {
  FloatMatrix out(x.rows(), linear.out_features());
  linear.apply(context, x.view(), out.view());
  return out;
}

}  // namespace clefkit
