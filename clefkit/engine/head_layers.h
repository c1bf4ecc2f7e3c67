#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "clefkit/backend/layer_norm.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/float_matrix.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/kernels/attention.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit {

// The parts that the decision head is made of (model.md 7), as PyTorch's modules of these names
// store them. Weights stay as they are in the mapped model, which must outlive them.

// A LayerNorm with eps 1e-5.
class HeadLayerNorm : public LayerNorm {
 public:
  HeadLayerNorm(const Model& model, const std::string& name, std::size_t width)
      : LayerNorm(model, name, width, 1e-5f) {}
  // A fresh matrix.
  FloatMatrix operator()(const ComputeContext& context, const FloatMatrix& x) const;
};

// torch.nn.MultiheadAttention without masks.
class HeadAttention {
 public:
  HeadAttention(const Model& model, const std::string& name, std::size_t width, std::size_t heads);

  // Keys and values side by side, [memory rows, 2 · width]; one row depends on one row of `memory`
  // only, so they may be projected in pieces.
  void project_memory(const ComputeContext& context, MatrixView<const float> memory,
                      MatrixView<float> keys_values) const;
  // x: [rows, width]; returns [rows, width].
  FloatMatrix attend(const ComputeContext& context, const FloatMatrix& x,
                     const FloatMatrix& keys_values) const;

 private:
  AttentionShape shape_;
  Linear query_, key_value_, out_;
};

// linear · gelu (exact) · linear, all with bias.
class HeadFeedForward {
 public:
  HeadFeedForward(const Model& model, const std::string& first, const std::string& second,
                  std::size_t in, std::size_t hidden, std::size_t out);
  FloatMatrix operator()(const ComputeContext& context, const FloatMatrix& x) const;

 private:
  Linear first_, second_;
};

// out = x · Wᵀ, a fresh matrix.
FloatMatrix apply_linear(const ComputeContext& context, const Linear& linear, const FloatMatrix& x);

}  // namespace clefkit
