#include "clefkit/backend/vision_embedding.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "clefkit/backend/rotary.h"
#include "clefkit/backend/weights.h"

namespace clefkit {
namespace {

constexpr char kPrefix[] = "model.visual.";

}  // namespace

VisionEmbedding::VisionEmbedding(const Model& model) : model_(model) {
  const VisionConfig& config = model.config.vision;
  frequencies_ = rotary_frequencies(VisionConfig::kRopeTheta, config.head_dim() / 2);
  while (table_side_ * table_side_ < config.num_position_embeddings) ++table_side_;
  position_table_ = weight_matrix(model, std::string(kPrefix) + "pos_embed.weight",
                                  config.num_position_embeddings, config.hidden_size);
  patch_embed_ = linear_layer_with_bias(model, std::string(kPrefix) + "patch_embed.proj",
                                        config.hidden_size, config.patch_values());
}

void VisionEmbedding::apply(const ComputeContext& context, const VisionBatch& batch,
                            const VisionObserver& observer, MatrixView<float> x,
                            MatrixView<float> cosines, MatrixView<float> sines) const {
  patch_embed_.apply(context, batch.pixels, x);
  if (observer.patch_embeddings) observer.patch_embeddings(x);
  std::size_t first = 0;
  for (const VisionSegment& segment : batch.segments) {
    const std::size_t count = segment.patches();
    add_positions(segment, x.rows_from(first, count));
    fill_angles(segment, cosines.rows_from(first, count), sines.rows_from(first, count));
    first += count;
  }
  assert(first == x.rows);
  check_results(model_, x, std::string(kPrefix) + "p", "vision.patch_embeddings");  // Both embeds.
}

std::vector<VisionEmbedding::Place> VisionEmbedding::places(const VisionSegment& segment) const {
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

void VisionEmbedding::add_positions(const VisionSegment& segment, MatrixView<float> x) const {
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

void VisionEmbedding::fill_angles(const VisionSegment& segment, MatrixView<float> cosines,
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

}  // namespace clefkit
