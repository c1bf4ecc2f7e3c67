#include "clefkit/backend/cpu/mlp.h"

#include <array>

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit::cpu {

Mlp::Mlp(const Model& model, const std::string& prefix, Precision precision) {
  const std::size_t hidden = model.config.text.hidden_size;
  const std::size_t intermediate = model.config.text.intermediate_size;
  const std::string name = prefix + "mlp.";
  gate_proj_ = linear_layer(model, name + "gate_proj.weight", intermediate, hidden, precision);
  up_proj_ = linear_layer(model, name + "up_proj.weight", intermediate, hidden, precision);
  down_proj_ = linear_layer(model, name + "down_proj.weight", hidden, intermediate, precision);
}

void Mlp::activate(const ComputeContext& context, MatrixView<const float> x, Workspace& workspace,
                   MatrixView<float> inner) const {
  const Workspace::Scope scope(workspace);
  const MatrixView<float> up = workspace.matrix(x.rows, up_proj_.out_features());
  const std::array inputs{LinearOutput{&gate_proj_, inner}, LinearOutput{&up_proj_, up}};
  apply_linears(context, x, inputs);
  silu_multiply(context, inner, up);
}

void Mlp::project(const ComputeContext& context, MatrixView<const float> inner,
                  MatrixView<float> out) const {
  down_proj_.apply(context, inner, out);
}

}  // namespace clefkit::cpu
