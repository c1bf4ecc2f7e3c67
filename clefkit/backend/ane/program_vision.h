#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "clefkit/backend/ane/program_set.h"
#include "clefkit/backend/backend.h"
#include "clefkit/backend/vision_embedding.h"
#include "clefkit/backend/vision_merger.h"
#include "clefkit/model/model.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/programs/program_weights.h"
#include "clefkit/programs/vision_block_program.h"

namespace clefkit::ane {

// Encodes pictures by the programs of the vision blocks (programs/vision_block_program.h): patch
// embedding, positions and merger on the CPU, in between pictures packed into calls of S patches.
// Programs are made when the first picture comes, with weights copied as FP16.
class ProgramVision {
 public:
  // S unless said otherwise.
  static constexpr std::size_t kPatches{kVisionPatches};

  // Its programs are the set's from number `first_program` on. The model, which has vision, and the
  // set must outlive it.
  ProgramVision(const Model& model, ProgramSet& programs, std::size_t first_program,
                const Spellings& spellings = {}, std::size_t patches = kPatches);

  // S: what a call takes.
  std::size_t patches() const { return patches_; }
  // Patches see all of their own picture, so it must lie within one call.
  bool holds(std::span<const VisionSegment> segments) const;

  // As Backend::encode_vision, for segments that it holds. Throws Error: kCorruptData for a weight
  // that FP16 cannot hold or features that are not finite, kCancelled, and as ProgramSet.
  void encode(const ComputeContext& context, const VisionBatch& batch,
              const VisionObserver& observer);

 private:
  // What the ports of a call hold; all but x is the same for every block.
  struct Call {
    std::size_t first_patch = 0, patches = 0;  // Of the batch; the rest of S is padding.
    std::vector<Half> x;                       // Rows [S, hidden_size]; padding is zeros at first.
    std::vector<Half> cos, sin;                // Channels [head_dim / 2, S].
    std::vector<Half> mask;                    // [S, S]
  };

  std::vector<Call> calls_of(std::span<const VisionSegment> segments, MatrixView<const float> x,
                             MatrixView<const float> cosines, MatrixView<const float> sines) const;
  // x becomes the block's output.
  void run(std::size_t block, Call& call);
  ProgramSource source(std::size_t block);

  const Model& model_;
  ProgramSet& programs_;
  const std::size_t first_program_, patches_;
  const Spellings spellings_;
  const VisionEmbedding embedding_;
  const VisionMerger merger_;
  const std::vector<PlannedProgram> plan_;
  std::vector<std::unique_ptr<ProgramWeights>> weights_;  // By block; null until it is used.
};

}  // namespace clefkit::ane
