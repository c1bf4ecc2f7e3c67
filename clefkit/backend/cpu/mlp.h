#pragma once

#include <string>

#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// SwiGLU: down(silu(gate(x)) ⊙ up(x)) (model.md 2.1). The model must outlive it.
class Mlp {
 public:
  // `prefix` is that of the layer's tensors: "model.language_model.layers.7.".
  Mlp(const Model& model, const std::string& prefix, Precision precision);

  // x, out: [tokens, hidden_size], not overlapping.
  void forward(const ComputeContext& context, MatrixView<const float> x, Workspace& workspace,
               MatrixView<float> out) const;

 private:
  Linear gate_proj_, up_proj_, down_proj_;
};

}  // namespace clefkit::cpu
