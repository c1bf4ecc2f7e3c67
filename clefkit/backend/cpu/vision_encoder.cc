#include "clefkit/backend/cpu/vision_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"
#include "clefkit/model/tensor_plan.h"

namespace clefkit::cpu {
namespace {

constexpr auto kLayerNormEps = static_cast<float>(VisionConfig::kLayerNormEps);
// The MLP's activations, the widest ones, are computed this many rows at a time.
constexpr std::size_t kMlpRows = 1024;

}  // namespace

VisionEncoder::VisionEncoder(const Model& model)
    : model_(model), embedding_(model), merger_(model) {
  const VisionConfig& config = model.config.vision;
  const std::size_t width = config.hidden_size, head_dim = config.head_dim();
  attention_ = {.query_heads = config.num_heads,
                .kv_heads = config.num_heads,
                .head_dim = head_dim,
                .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  blocks_.reserve(config.depth);
  for (std::size_t i = 0; i < config.depth; ++i) {
    const std::string block = vision_block_prefix(i);
    const auto linear = [&](const char* name, std::size_t out, std::size_t in) {
      return linear_layer_with_bias(model, block + name, out, in);
    };
    blocks_.push_back({.norm1 = LayerNorm(model, block + "norm1", width, kLayerNormEps),
                       .norm2 = LayerNorm(model, block + "norm2", width, kLayerNormEps),
                       .qkv = linear("attn.qkv", 3 * width, width),
                       .proj = linear("attn.proj", width, width),
                       .fc1 = linear("mlp.linear_fc1", config.intermediate_size, width),
                       .fc2 = linear("mlp.linear_fc2", width, config.intermediate_size)});
  }
}

void VisionEncoder::encode(const ComputeContext& context, const VisionBatch& batch,
                           const VisionObserver& observer, Workspace& workspace) const {
  const std::size_t patches = batch.pixels.rows;
  const Workspace::Scope scope(workspace);
  const MatrixView<float> x = workspace.matrix(patches, model_.config.vision.hidden_size);
  const MatrixView<float> branch = workspace.matrix(patches, x.columns);
  const MatrixView<float> cosines = workspace.matrix(patches, embedding_.angles());
  const MatrixView<float> sines = workspace.matrix(patches, embedding_.angles());

  embedding_.apply(context, batch, observer, x, cosines, sines);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    attend(context, blocks_[i], batch.segments, x, cosines, sines, workspace, branch);
    add(context, x, branch);
    add_mlp(context, blocks_[i], x, workspace);
    check_results(model_, x, vision_block_prefix(i), fmt::format("vision.blocks.{}", i));
    if (observer.block_output) observer.block_output(i, x);
  }
  const MatrixView<float> hidden = workspace.matrix(batch.features.rows, merger_.merged_size());
  merger_.apply(context, x, hidden, batch.features);
}

void VisionEncoder::attend(const ComputeContext& context, const Block& block,
                           std::span<const VisionSegment> segments, MatrixView<const float> x,
                           MatrixView<const float> cosines, MatrixView<const float> sines,
                           Workspace& workspace, MatrixView<float> branch) const {
  const Workspace::Scope scope(workspace);
  const std::size_t width = x.columns, heads = attention_.query_heads;
  const MatrixView<float> qkv = workspace.matrix(x.rows, 3 * width);
  const MatrixView<float> attended = workspace.matrix(x.rows, width);
  block.norm1.apply(context, x, branch);
  block.qkv.apply(context, branch, qkv);
  const MatrixView<float> q = qkv.columns_from(0, width), k = qkv.columns_from(width, width);
  const MatrixView<float> v = qkv.columns_from(2 * width, width);
  apply_rotary(context, q, heads, attention_.head_dim, cosines, sines);
  apply_rotary(context, k, heads, attention_.head_dim, cosines, sines);
  std::size_t first = 0;
  for (const VisionSegment& segment : segments) {
    const std::size_t count = segment.patches();
    full_attention(context, attention_, q.rows_from(first, count), k.rows_from(first, count),
                   v.rows_from(first, count), attended.rows_from(first, count));
    first += count;
  }
  block.proj.apply(context, attended, branch);
}

void VisionEncoder::add_mlp(const ComputeContext& context, const Block& block, MatrixView<float> x,
                            Workspace& workspace) const {
  const Workspace::Scope scope(workspace);
  const std::size_t most = std::min(kMlpRows, x.rows);
  const MatrixView<float> normed = workspace.matrix(most, x.columns);
  const MatrixView<float> inner = workspace.matrix(most, block.fc1.out_features());
  for (std::size_t first = 0; first < x.rows; first += most) {
    const std::size_t count = std::min(most, x.rows - first);
    const MatrixView<float> rows = x.rows_from(first, count);
    const MatrixView<float> input = normed.rows_from(0, count), hidden = inner.rows_from(0, count);
    block.norm2.apply(context, rows, input);
    block.fc1.apply(context, input, hidden);
    gelu_tanh(context, hidden);
    block.fc2.apply(context, hidden, input);
    add(context, rows, input);
  }
}

}  // namespace clefkit::cpu
