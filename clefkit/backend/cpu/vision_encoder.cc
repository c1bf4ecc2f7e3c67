#include "clefkit/backend/cpu/vision_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "clefkit/backend/rotary.h"
#include "clefkit/backend/weights.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit::cpu {
namespace {

constexpr char kPrefix[] = "model.visual.";
constexpr float kLayerNormEps = 1e-6f;
constexpr double kRopeTheta = 10000;
// The MLP's activations, the widest ones, are computed this many rows at a time.
constexpr std::size_t kMlpRows = 1024;

std::string block_prefix(std::size_t index) { return fmt::format("{}blocks.{}.", kPrefix, index); }

}  // namespace

VisionEncoder::VisionEncoder(const Model& model)
    : model_(model),
      merger_norm_(model, std::string(kPrefix) + "merger.norm", model.config.vision.hidden_size,
                   kLayerNormEps) {
  const VisionConfig& config = model.config.vision;
  const std::string prefix = kPrefix;
  const std::size_t width = config.hidden_size, head_dim = width / config.num_heads;
  attention_ = {.query_heads = config.num_heads,
                .kv_heads = config.num_heads,
                .head_dim = head_dim,
                .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  frequencies_ = rotary_frequencies(kRopeTheta, head_dim / 2);
  while (table_side_ * table_side_ < config.num_position_embeddings) ++table_side_;
  position_table_ =
      weight_matrix(model, prefix + "pos_embed.weight", config.num_position_embeddings, width);
  patch_embed_ =
      linear_layer_with_bias(model, prefix + "patch_embed.proj", width, config.patch_values());
  blocks_.reserve(config.depth);
  for (std::size_t i = 0; i < config.depth; ++i) {
    const std::string block = block_prefix(i);
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
  const std::size_t merged = config.merged_size();
  merger_fc1_ = linear_layer_with_bias(model, prefix + "merger.linear_fc1", merged, merged);
  merger_fc2_ =
      linear_layer_with_bias(model, prefix + "merger.linear_fc2", config.out_hidden_size, merged);
}

void VisionEncoder::encode(const ComputeContext& context, const VisionBatch& batch,
                           const VisionObserver& observer, Workspace& workspace) const {
  const std::size_t patches = batch.pixels.rows;
  const Workspace::Scope scope(workspace);
  const MatrixView<float> x = workspace.matrix(patches, patch_embed_.out_features());
  const MatrixView<float> branch = workspace.matrix(patches, x.columns);
  const MatrixView<float> cosines = workspace.matrix(patches, attention_.head_dim / 2);
  const MatrixView<float> sines = workspace.matrix(patches, attention_.head_dim / 2);

  patch_embed_.apply(context, batch.pixels, x);
  if (observer.patch_embeddings) observer.patch_embeddings(x);
  std::size_t first = 0;
  for (const VisionSegment& segment : batch.segments) {
    const std::size_t count = segment.patches();
    add_positions(segment, x.rows_from(first, count));
    fill_angles(segment, cosines.rows_from(first, count), sines.rows_from(first, count));
    first += count;
  }
  assert(first == patches);
  check_results(model_, x, std::string(kPrefix) + "p", "vision.patch_embeddings");  // Both embeds.

  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    attend(context, blocks_[i], batch.segments, x, cosines, sines, workspace, branch);
    add(context, x, branch);
    add_mlp(context, blocks_[i], x, workspace);
    check_results(model_, x, block_prefix(i), fmt::format("vision.blocks.{}", i));
    if (observer.block_output) observer.block_output(i, x);
  }
  merge(context, x, workspace, batch.features);
  check_results(model_, batch.features, std::string(kPrefix) + "merger.", "vision.features");
}

std::vector<VisionEncoder::Place> VisionEncoder::places(const VisionSegment& segment) const {
  const std::size_t merge = model_.config.vision.spatial_merge_size;
  assert(segment.rows % merge == 0 && segment.columns % merge == 0);
  std::vector<Place> places;
  places.reserve(segment.patches());
  for (std::size_t block_row = 0; block_row < segment.rows; block_row += merge) {
    for (std::size_t block_column = 0; block_column < segment.columns; block_column += merge) {
      for (std::size_t row = 0; row < merge; ++row) {
        for (std::size_t column = 0; column < merge; ++column) {
          places.push_back({block_row + row, block_column + column});
        }
      }
    }
  }
  return places;
}

void VisionEncoder::add_positions(const VisionSegment& segment, MatrixView<float> x) const {
  // The table's corners lie on the picture's (align_corners).
  struct Taps {
    std::size_t low, high;
    float high_weight;
  };
  const auto taps = [&](std::size_t count) {
    const auto last = static_cast<float>(table_side_ - 1);
    const float step = last / static_cast<float>(std::max<std::size_t>(count - 1, 1));
    std::vector<Taps> all;
    for (std::size_t i = 0; i < count; ++i) {
      const float at = std::min(static_cast<float>(i) * step, last);
      const auto low = static_cast<std::size_t>(at);
      all.push_back({low, std::min(low + 1, table_side_ - 1), at - static_cast<float>(low)});
    }
    return all;
  };
  const std::vector<Taps> rows = taps(segment.rows), columns = taps(segment.columns);
  std::vector<float> entry(x.columns);
  const auto add_entry = [&](std::size_t row, std::size_t column, float weight,
                             std::span<float> out) {
    copy_weight_row(position_table_, row * table_side_ + column, entry);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * entry[i];
  };
  std::vector<float> sum(x.columns);
  std::size_t index = 0;
  for (const Place& place : places(segment)) {
    const Taps &r = rows[place.row], &c = columns[place.column];
    std::ranges::fill(sum, 0.0f);
    add_entry(r.low, c.low, (1 - r.high_weight) * (1 - c.high_weight), sum);
    add_entry(r.low, c.high, (1 - r.high_weight) * c.high_weight, sum);
    add_entry(r.high, c.low, r.high_weight * (1 - c.high_weight), sum);
    add_entry(r.high, c.high, r.high_weight * c.high_weight, sum);
    const std::span<float> out = x.row(index++);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += sum[i];
  }
}

void VisionEncoder::fill_angles(const VisionSegment& segment, MatrixView<float> cosines,
                                MatrixView<float> sines) const {
  std::size_t index = 0;
  const std::size_t axis = frequencies_.size();
  for (const Place& place : places(segment)) {
    for (std::size_t i = 0; i < 2 * axis; ++i) {
      const std::size_t position = i < axis ? place.row : place.column;
      set_rotary_angle(static_cast<float>(position) * frequencies_[i % axis], cosines.row(index)[i],
                       sines.row(index)[i]);
    }
    ++index;
  }
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

void VisionEncoder::merge(const ComputeContext& context, MatrixView<const float> x,
                          Workspace& workspace, MatrixView<float> features) const {
  const Workspace::Scope scope(workspace);
  const std::size_t merged = merger_fc1_.in_features(), tokens = features.rows;
  assert(tokens * merged == x.rows * x.columns);
  const MatrixView<float> normed = workspace.matrix(x.rows, x.columns);
  merger_norm_.apply(context, x, normed);
  // The patches of a token are neighbours, so side by side they are one longer row.
  const MatrixView<float> hidden = workspace.matrix(tokens, merged);
  merger_fc1_.apply(context, {normed.data, tokens, merged}, hidden);
  gelu_erf(context, hidden);
  merger_fc2_.apply(context, hidden, features);
}

}  // namespace clefkit::cpu
