#pragma once

#include <cstddef>

#include "clefkit/backend/layer_norm.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit {

// From the last block's rows to features: four neighbours become one token (model.md 4), in
// float32. The model must outlive it and have vision.
class VisionMerger {
 public:
  explicit VisionMerger(const Model& model);

  // Columns of `hidden`.
  std::size_t merged_size() const { return fc1_.in_features(); }

  // `x` [patches, hidden_size] is normed in place, `hidden` [features.rows, merged_size()] is room
  // to work. Throws Error(kCorruptData) for a result that is not finite.
  void apply(const ComputeContext& context, MatrixView<float> x, MatrixView<float> hidden,
             MatrixView<float> features) const;

 private:
  const Model& model_;
  LayerNorm norm_;
  Linear fc1_, fc2_;
};

}  // namespace clefkit
