#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/backend/cpu/full_attention_layer.h"
#include "clefkit/backend/cpu/linear_attention_layer.h"
#include "clefkit/backend/cpu/mlp.h"
#include "clefkit/backend/cpu/vision_encoder.h"
#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/backend/rotary.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// The text layers and the vision encoder in float32 between operations, over weights as they are
// stored. One prefill at a time; sequences are independent of each other. The model must outlive
// it.
class CpuBackend final : public Backend {
 public:
  CpuBackend(const Model& model, Precision precision);

  std::string_view name() const override { return "cpu"; }
  std::size_t chunk_tokens() const override;
  std::unique_ptr<SequenceState> new_sequence(std::size_t capacity_tokens) const override;
  void prefill(const ComputeContext& context, SequenceState& state, const TextChunk& chunk,
               const TextObserver& observer) override;
  std::size_t vision_patches() const override;
  void encode_vision(const ComputeContext& context, const VisionBatch& batch,
                     const VisionObserver& observer) override;

 private:
  struct Layer {
    std::vector<float> input_layernorm, post_attention_layernorm;  // Multipliers.
    std::variant<LinearAttentionLayer, FullAttentionLayer> mixer;
    Mlp mlp;
  };

  const Model& model_;
  RotaryAngles rotary_angles_;
  std::vector<Layer> layers_;
  std::optional<VisionEncoder> vision_;
  Workspace workspace_;
};

}  // namespace clefkit::cpu
