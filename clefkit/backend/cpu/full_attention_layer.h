#pragma once

#include <string>
#include <vector>

#include "clefkit/backend/cpu/cpu_sequence.h"
#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/kernels/attention.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// Cosines and sines of a chunk's positions, [tokens, rotary_dim / 2] each.
struct RotaryTable {
  MatrixView<const float> cosines, sines;
};

// The mixer of a full attention layer: gated softmax attention (model.md 2.3). Norm before and
// residual after it belong to the forward pass. The model must outlive it.
class FullAttentionLayer {
 public:
  // `prefix` is that of the layer's tensors: "model.language_model.layers.7.".
  FullAttentionLayer(const Model& model, const std::string& prefix, Precision precision);

  // x, out: [tokens, hidden_size], not overlapping. The cache holds the `past` tokens before them
  // and has room for these.
  void forward(const ComputeContext& context, MatrixView<const float> x, const RotaryTable& rotary,
               std::size_t past, KvCache& cache, Workspace& workspace, MatrixView<float> out) const;

 private:
  AttentionShape shape_;
  float norm_eps_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  std::vector<float> q_norm_, k_norm_;  // Multipliers, [head_dim].
};

}  // namespace clefkit::cpu
