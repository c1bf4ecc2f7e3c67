#pragma once

#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/backend/cpu/full_attention_layer.h"
#include "clefkit/backend/cpu/linear_attention_layer.h"
#include "clefkit/backend/cpu/mlp.h"
#include "clefkit/backend/cpu/rotary.h"
#include "clefkit/backend/cpu/workspace.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit::cpu {

// The text layers in float32 between operations, over weights as they are stored. One prefill at a
// time; sequences are independent of each other. The model must outlive it.
class CpuBackend final : public Backend {
 public:
  CpuBackend(const Model& model, Precision precision);

  std::string_view name() const override { return "cpu"; }
  std::size_t chunk_tokens() const override;
  std::unique_ptr<SequenceState> new_sequence(std::size_t capacity_tokens) const override;
  void prefill(const ComputeContext& context, SequenceState& state, const TextChunk& chunk,
               const LayerObserver& observer) override;

 private:
  struct Layer {
    std::vector<float> input_layernorm, post_attention_layernorm;  // Multipliers.
    std::variant<LinearAttentionLayer, FullAttentionLayer> mixer;
    Mlp mlp;
  };

  // Throws Error naming the weight that is to blame, or the layer, when values are not finite.
  void check_output(std::size_t layer, MatrixView<const float> hidden) const;

  const Model& model_;
  RotaryAngles rotary_angles_;
  std::vector<Layer> layers_;
  Workspace workspace_;
};

}  // namespace clefkit::cpu
