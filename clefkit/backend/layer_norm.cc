#include "clefkit/backend/layer_norm.h"

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {

LayerNorm::LayerNorm(const Model& model, const std::string& name, std::size_t width, float eps)
    : weight_(float_vector(model, name + ".weight", width)),
      bias_(float_vector(model, name + ".bias", width)),
      eps_(eps) {}

void LayerNorm::apply(const ComputeContext& context, MatrixView<const float> x,
                      MatrixView<float> out) const {
  layer_norm(context, x, weight_, bias_, eps_, out);
}

}  // namespace clefkit
