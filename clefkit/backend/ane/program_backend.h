#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clefkit/backend/ane/device.h"
#include "clefkit/backend/ane/program_sequence.h"
#include "clefkit/backend/ane/program_set.h"
#include "clefkit/backend/ane/program_vision.h"
#include "clefkit/backend/ane/text_programs.h"
#include "clefkit/backend/backend.h"
#include "clefkit/backend/rotary.h"
#include "clefkit/model/model.h"
#include "clefkit/model/program_plan.h"

namespace clefkit::ane {

// Computes the text layers and the blocks of the vision encoder by their MIL programs on a device:
// a Neural Engine, or a simulator of one.
class ProgramBackend final : public Backend {
 public:
  // `vision_fallback` encodes what no vision program takes. The model must outlive it. Throws Error
  // as TextPrograms.
  ProgramBackend(const Model& model, std::unique_ptr<Device> device, const ProgramForm& form,
                 std::unique_ptr<Backend> vision_fallback, const ProgramSetOptions& options = {});

  std::string_view name() const override { return device_->name(); }
  bool leaves_processor_free() const override { return true; }
  std::size_t chunk_tokens() const override;
  std::unique_ptr<SequenceState> new_sequence(std::size_t capacity_tokens) const override;
  // The observer sees the output of layers that end with a program, with the split plan all of
  // them, and nothing from within a program. Throws Error: kUnsupported beyond the longest context,
  // and as ProgramSet.
  void prefill(const ComputeContext& context, SequenceState& state, const TextChunk& chunk,
               const TextObserver& observer) override;
  std::size_t vision_patches() const override;
  // By the programs unless one of the pictures has more patches than a call takes: then as the
  // fallback does, bit for bit. Throws Error as ProgramVision and as the fallback.
  void encode_vision(const ComputeContext& context, const VisionBatch& batch,
                     const VisionObserver& observer) override;

 private:
  // The tokens of one call, and what of its inputs all layers share; as the ports have them.
  struct Piece {
    std::size_t tokens = 0, past = 0;
    std::vector<Half> valid, conv_select;
    // For attention programs: of the past as much as their caches hold, and before the call's own
    // tokens the rest of it once more.
    std::size_t context = 0, cached = 0, repeated = 0;
    std::vector<Half> cos, sin, mask;
  };
  // Which sequence's keys and values lie in an attention program's cache ports, and how many.
  struct Resident {
    std::uint64_t sequence = 0;
    std::size_t tokens = 0;
  };

  Piece piece_of(const TextChunk& chunk, std::size_t first, ProgramSequence& sequence) const;
  // Each reads rows [tokens, hidden_size], padded to a call's length, and writes them.
  void run_layers(std::size_t program, ProgramSequence& sequence, const Piece& piece,
                  MatrixView<Half> x);
  void run_attention(std::size_t program, ProgramSequence& sequence, const Piece& piece,
                     MatrixView<Half> x);
  LoadedProgram& load(std::size_t program, std::size_t context);

  const Model& model_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Backend> vision_fallback_;
  const RotaryAngles rotary_angles_;
  TextPrograms programs_;
  ProgramSet loaded_;
  std::optional<ProgramVision> vision_;  // None when the model has no vision.
  std::map<ProgramSet::Key, Resident> residents_;
};

}  // namespace clefkit::ane
