#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit {

// From pixels to what the blocks of the vision encoder read (model.md 4), in float32. The model
// must outlive it and have vision.
class VisionEmbedding {
 public:
  explicit VisionEmbedding(const Model& model);

  // Angles of a patch: as many cosines, and as many sines.
  std::size_t angles() const { return 2 * frequencies_.size(); }

  // x [patches, hidden_size] = patch embeddings and their positions; cosines, sines [patches,
  // angles()] of the rotary embedding. Throws Error(kCorruptData) for a result that is not finite.
  void apply(const ComputeContext& context, const VisionBatch& batch,
             const VisionObserver& observer, MatrixView<float> x, MatrixView<float> cosines,
             MatrixView<float> sines) const;

 private:
  // Where a patch is in its picture.
  struct Place {
    std::size_t row = 0, column = 0;
  };

  // Of a segment's patches, in the order of their rows.
  std::vector<Place> places(const VisionSegment& segment) const;
  // Adds the learned positions, interpolated to the segment's size.
  void add_positions(const VisionSegment& segment, MatrixView<float> x) const;
  void fill_angles(const VisionSegment& segment, MatrixView<float> cosines,
                   MatrixView<float> sines) const;

  const Model& model_;
  std::vector<float> frequencies_;  // Of one axis, [head_dim / 4].
  std::size_t table_side_ = 0;      // The position table is a square of this many rows.
  WeightMatrix position_table_;
  Linear patch_embed_;
};

}  // namespace clefkit
