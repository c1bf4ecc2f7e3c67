#pragma once

#include <string>

#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// SwiGLU: down(silu(gate(x)) ⊙ up(x)) (model.md 2.1), in two steps, so that what lies between them
// can be looked at. The model must outlive it.
class Mlp {
 public:
  // `prefix` is that of the layer's tensors: "model.language_model.layers.7.".
  Mlp(const Model& model, const std::string& prefix, Precision precision);

  // inner = silu(gate(x)) ⊙ up(x). x: [tokens, hidden_size], inner: [tokens, intermediate_size].
  void activate(const ComputeContext& context, MatrixView<const float> x, Workspace& workspace,
                MatrixView<float> inner) const;
  // out = down(inner), [tokens, hidden_size].
  void project(const ComputeContext& context, MatrixView<const float> inner,
               MatrixView<float> out) const;

 private:
  Linear gate_proj_, up_proj_, down_proj_;
};

}  // namespace clefkit::cpu
