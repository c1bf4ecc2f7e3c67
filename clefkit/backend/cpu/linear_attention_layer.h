#pragma once

#include <string>
#include <vector>

#include "clefkit/backend/cpu/cpu_sequence.h"
#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/kernels/delta_rule.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// The mixer of a linear attention layer: gated delta rule (model.md 2.2). Norm before and residual
// after it belong to the forward pass. The model must outlive it.
class LinearAttentionLayer {
 public:
  // `prefix` is that of the layer's tensors: "model.language_model.layers.7.".
  LinearAttentionLayer(const Model& model, const std::string& prefix, Precision precision);

  // x, out: [tokens, hidden_size], the tokens that follow those in `state`; not overlapping.
  void forward(const ComputeContext& context, MatrixView<const float> x,
               LinearAttentionState& state, Workspace& workspace, MatrixView<float> out) const;

 private:
  // In place of a and b (one value per token and value head): log decay and write strength.
  void compute_gates(const ComputeContext& context, MatrixView<float> a, MatrixView<float> b) const;

  DeltaRuleShape shape_;
  std::size_t conv_kernel_;
  float norm_eps_;
  Linear in_proj_qkv_, in_proj_z_, in_proj_a_, in_proj_b_, out_proj_;
  std::vector<float> conv_weight_;  // [conv_channels, conv_kernel]
  std::vector<float> decay_;        // −exp(A_log), one per value head
  std::vector<float> dt_bias_;
  std::vector<float> norm_weight_;  // [value_head_dim]; not zero-centred.
};

}  // namespace clefkit::cpu
