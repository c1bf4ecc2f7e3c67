#include "clefkit/backend/vision_merger.h"

#include <cassert>
#include <string>

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
namespace {

constexpr char kPrefix[] = "model.visual.merger.";

}  // namespace

VisionMerger::VisionMerger(const Model& model)
    : model_(model),
      norm_(model, std::string(kPrefix) + "norm", model.config.vision.hidden_size,
            static_cast<float>(VisionConfig::kLayerNormEps)) {
  const VisionConfig& config = model.config.vision;
  const std::size_t merged = config.merged_size();
  fc1_ = linear_layer_with_bias(model, std::string(kPrefix) + "linear_fc1", merged, merged);
  fc2_ = linear_layer_with_bias(model, std::string(kPrefix) + "linear_fc2", config.out_hidden_size,
                                merged);
}

void VisionMerger::apply(const ComputeContext& context, MatrixView<float> x,
                         MatrixView<float> hidden, MatrixView<float> features) const {
  const std::size_t merged = merged_size(), tokens = features.rows;
  assert(tokens * merged == x.rows * x.columns && hidden.rows == tokens);
  norm_.apply(context, x, x);
  // The patches of a token are neighbours, so side by side they are one longer row.
  fc1_.apply(context, {x.data, tokens, merged}, hidden);
  gelu_erf(context, hidden);
  fc2_.apply(context, hidden, features);
  check_results(model_, features, kPrefix, "vision.features");
}

}  // namespace clefkit
