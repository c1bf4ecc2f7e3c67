#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/backend/ane/program_sequence.h"
#include "clefkit/backend/ane/program_weights.h"
#include "clefkit/backend/backend.h"
#include "clefkit/backend/rotary.h"
#include "clefkit/mil/simulator.h"
#include "clefkit/model/model.h"
#include "clefkit/model/program_plan.h"

namespace clefkit::ane {

// Computes the text layers by their MIL programs in a simulator of the Neural Engine: slowly, for
// seeing on any machine what its arithmetic does to answers. Weights are copied, so it is for small
// models. Pictures are encoded by another backend: there are no vision programs yet.
class SimulatorBackend final : public Backend {
 public:
  // The model must outlive it. Throws Error(kCorruptData) for a weight that FP16 cannot hold, and
  // kInternal when a program does not pass the checker.
  SimulatorBackend(const Model& model, mil::NumericProfile profile, PlanKind plan,
                   std::unique_ptr<Backend> vision);

  std::string_view name() const override { return name_; }
  std::size_t chunk_tokens() const override;
  std::unique_ptr<SequenceState> new_sequence(std::size_t capacity_tokens) const override;
  // The observer sees the layers that end with a program: with the split plan all of them. Throws
  // Error: kUnsupported beyond the longest context, kCorruptData when a result is not finite.
  void prefill(const ComputeContext& context, SequenceState& state, const TextChunk& chunk,
               const LayerObserver& observer) override;
  std::size_t vision_patches() const override { return vision_->vision_patches(); }
  void encode_vision(const ComputeContext& context, const VisionBatch& batch,
                     const VisionObserver& observer) override {
    vision_->encode_vision(context, batch, observer);
  }

 private:
  struct Loaded {
    mil::Program program;
    std::unique_ptr<mil::Simulator> simulator;
  };
  // The tokens of one program call, and what of its inputs all layers share.
  struct Piece {
    std::size_t tokens = 0;
    std::size_t context = 0;
    mil::Tensor valid, conv_select, cos, sin, mask;
  };

  const mil::Simulator& load(std::size_t program, std::size_t context);
  // `past` tokens come before the chunk's token `first`.
  Piece piece_of(const TextChunk& chunk, std::size_t first, std::size_t past) const;
  mil::Tensor run_layers(std::size_t program, ProgramSequence& sequence, const Piece& piece,
                         mil::Tensor x);
  mil::Tensor run_attention(std::size_t program, ProgramSequence& sequence, const Piece& piece,
                            mil::Tensor x);

  const Model& model_;
  const mil::NumericProfile profile_;
  const std::string name_;
  const std::unique_ptr<Backend> vision_;
  const RotaryAngles rotary_angles_;
  const std::vector<PlannedProgram> programs_;
  std::vector<std::unique_ptr<ProgramWeights>> weights_;          // By program.
  std::map<std::pair<std::size_t, std::size_t>, Loaded> loaded_;  // By program and context.
};

}  // namespace clefkit::ane
