#pragma once

#include <string>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/backend/layer_norm.h"
#include "clefkit/kernels/attention.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// Pixels to features (model.md 4): patch embedding, interpolated positions, blocks, merger, all in
// float32 over the BF16 weights; the reference's roundings to BF16 in between are left out. The
// model must outlive it and have vision.
class VisionEncoder {
 public:
  explicit VisionEncoder(const Model& model);

  // Segments are computed independently: a batch gives the bits that its segments give alone.
  void encode(const ComputeContext& context, const VisionBatch& batch,
              const VisionObserver& observer, Workspace& workspace) const;

 private:
  struct Block {
    LayerNorm norm1, norm2;
    Linear qkv, proj, fc1, fc2;
  };
  // Where a patch is in its picture.
  struct Place {
    std::size_t row = 0, column = 0;
  };

  // Of a segment's patches, in the order of their rows.
  std::vector<Place> places(const VisionSegment& segment) const;
  // Adds the learned positions, interpolated to the segment's size.
  void add_positions(const VisionSegment& segment, MatrixView<float> x) const;
  // Cosines and sines [patches, head_dim / 2] of a segment's rotary embedding.
  void fill_angles(const VisionSegment& segment, MatrixView<float> cosines,
                   MatrixView<float> sines) const;
  // branch = proj(attention(qkv(norm1(x)))).
  void attend(const ComputeContext& context, const Block& block,
              std::span<const VisionSegment> segments, MatrixView<const float> x,
              MatrixView<const float> cosines, MatrixView<const float> sines, Workspace& workspace,
              MatrixView<float> branch) const;
  // x += fc2(gelu(fc1(norm2(x)))).
  void add_mlp(const ComputeContext& context, const Block& block, MatrixView<float> x,
               Workspace& workspace) const;
  void merge(const ComputeContext& context, MatrixView<const float> x, Workspace& workspace,
             MatrixView<float> features) const;

  const Model& model_;
  AttentionShape attention_;
  std::vector<float> frequencies_;  // Of one axis, [head_dim / 4].
  std::size_t table_side_ = 0;      // The position table is a square of this many rows.
  WeightMatrix position_table_;
  Linear patch_embed_;
  std::vector<Block> blocks_;
  LayerNorm merger_norm_;
  Linear merger_fc1_, merger_fc2_;
};

}  // namespace clefkit::cpu
