#include "clefkit/backend/cpu/cpu_backend.h"

#include <cassert>
#include <string>

#include "clefkit/backend/weights.h"
#include "clefkit/base/error.h"
#include "clefkit/kernels/elementwise.h"
#include "clefkit/model/tensor_plan.h"

namespace clefkit::cpu {
namespace {

// A sweep decodes every weight once: over 512 tokens that costs a few percent of the products
// (11 % over 128), and activations of the 9B model take 70 MiB.
constexpr std::size_t kChunkTokens = 512;
// As many as a program of the Neural Engine takes, so that both are given the same batches.
constexpr std::size_t kVisionPatches = 1024;

}  // namespace

CpuBackend::CpuBackend(const Model& model, Precision precision)
    : model_(model),
      rotary_angles_(model.config.text.rope_theta, model.config.text.rotary_dim,
                     model.config.text.mrope_section) {
  const TextConfig& config = model.config.text;
  layers_.reserve(config.num_hidden_layers);
  for (std::size_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string prefix = text_layer_prefix(i);
    const auto norm = [&](const char* name) {
      return norm_multiplier(model, prefix + name + ".weight", config.hidden_size);
    };
    const auto mixer = [&]() -> decltype(Layer::mixer) {
      if (config.layer_types[i] == LayerType::kFullAttention) {
        return FullAttentionLayer(model, prefix, precision);
      }
      return LinearAttentionLayer(model, prefix, precision);
    };
    layers_.push_back({.input_layernorm = norm("input_layernorm"),
                       .post_attention_layernorm = norm("post_attention_layernorm"),
                       .mixer = mixer(),
                       .mlp = Mlp(model, prefix, precision)});
  }
  if (model.config.has_vision()) vision_.emplace(model);
}

std::size_t CpuBackend::chunk_tokens() const { return kChunkTokens; }

std::size_t CpuBackend::vision_patches() const { return kVisionPatches; }

std::unique_ptr<SequenceState> CpuBackend::new_sequence(std::size_t capacity_tokens) const {
  return std::make_unique<CpuSequence>(model_.config.text, capacity_tokens);
}

void CpuBackend::prefill(const ComputeContext& context, SequenceState& state,
                         const TextChunk& chunk, const TextObserver& observer) {
  auto& sequence = dynamic_cast<CpuSequence&>(state);
  const MatrixView<float> hidden = chunk.hidden;
  const std::size_t tokens = hidden.rows, past = sequence.tokens();
  const float eps = model_.config.text.rms_norm_eps;
  assert(tokens > 0 && hidden.columns == model_.config.text.hidden_size);
  if (past + tokens > sequence.capacity_tokens()) {
    throw_error(ErrorCode::kInvalidArgument, "sequence", "{} tokens, expected at most {}",
                past + tokens, sequence.capacity_tokens());
  }

  const Workspace::Scope scope(workspace_);
  const MatrixView<float> cosines = workspace_.matrix(tokens, rotary_angles_.half());
  const MatrixView<float> sines = workspace_.matrix(tokens, rotary_angles_.half());
  rotary_angles_.fill(chunk.temporal, chunk.height, chunk.width, cosines, sines);
  const MatrixView<float> normed = workspace_.matrix(tokens, hidden.columns);
  const MatrixView<float> branch = workspace_.matrix(tokens, hidden.columns);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    rms_norm(context, hidden, layer.input_layernorm, eps, normed);
    if (const auto* linear = std::get_if<LinearAttentionLayer>(&layer.mixer)) {
      linear->forward(context, normed, sequence.linear_attention(i), workspace_, branch);
    } else {
      std::get<FullAttentionLayer>(layer.mixer)
          .forward(context, normed, {cosines, sines}, past, sequence.kv_cache(i), workspace_,
                   branch);
    }
    add(context, hidden, branch);

    rms_norm(context, hidden, layer.post_attention_layernorm, eps, normed);
    {
      const Workspace::Scope mlp_scope(workspace_);
      const MatrixView<float> inner =
          workspace_.matrix(tokens, model_.config.text.intermediate_size);
      layer.mlp.activate(context, normed, workspace_, inner);
      if (observer.mlp_activations) observer.mlp_activations(i, inner);
      layer.mlp.project(context, inner, branch);
    }
    add(context, hidden, branch);

    check_results(model_, hidden, text_layer_prefix(i), fmt::format("layers.{}", i));
    if (observer.layer_output) observer.layer_output(i, hidden);
  }
  sequence.append(tokens);
}

void CpuBackend::encode_vision(const ComputeContext& context, const VisionBatch& batch,
                               const VisionObserver& observer) {
  if (!vision_) {
    throw Error(ErrorCode::kUnsupported, "model", "has no vision encoder, expected one for media");
  }
  // A large picture takes a gigabyte, which must not stay.
  Workspace workspace;
  vision_->encode(context, batch, observer, workspace);
}

}  // namespace clefkit::cpu
