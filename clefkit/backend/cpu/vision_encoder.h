#pragma once

#include <string>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/backend/layer_norm.h"
#include "clefkit/backend/vision_embedding.h"
#include "clefkit/backend/vision_merger.h"
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
  // branch = proj(attention(qkv(norm1(x)))).
  void attend(const ComputeContext& context, const Block& block,
              std::span<const VisionSegment> segments, MatrixView<const float> x,
              MatrixView<const float> cosines, MatrixView<const float> sines, Workspace& workspace,
              MatrixView<float> branch) const;
  // x += fc2(gelu(fc1(norm2(x)))).
  void add_mlp(const ComputeContext& context, const Block& block, MatrixView<float> x,
               Workspace& workspace) const;

  const Model& model_;
  AttentionShape attention_;
  VisionEmbedding embedding_;
  std::vector<Block> blocks_;
  VisionMerger merger_;
};

}  // namespace clefkit::cpu
