#pragma once

#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/model/model.h"

namespace clefkit {

// torch.nn.LayerNorm over rows of `width`, from `name`.weight and `name`.bias.
class LayerNorm {
 public:
  LayerNorm(const Model& model, const std::string& name, std::size_t width, float eps);
  // `out` may be `x`.
  void apply(const ComputeContext& context, MatrixView<const float> x, MatrixView<float> out) const;

 private:
  std::vector<float> weight_, bias_;
  float eps_;
};

}  // namespace clefkit
