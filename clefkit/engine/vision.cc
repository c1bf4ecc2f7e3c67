#include "clefkit/engine/vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/backend/vision_packing.h"

namespace clefkit {
namespace {

// The patches of several media as one list.
class PatchList {
 public:
  PatchList(std::span<const PreparedMedia* const> media, std::size_t patch_values)
      : media_(media), patch_values_(patch_values) {
    for (const PreparedMedia* one : media) {
      const MediaItem& item = one->item;
      segments_.insert(segments_.end(), item.grid_t, VisionSegment{item.grid_h, item.grid_w});
      first_.push_back(first_.back() + item.grid_t * item.grid_h * item.grid_w);
    }
  }

  std::span<const VisionSegment> segments() const { return segments_; }

  // Calls visit(item, row within the item, row within the range, rows) for every item that has
  // patches in [first, first + count).
  template <typename Visit>
  void visit_items(std::size_t first, std::size_t count, Visit&& visit) const {
    for (std::size_t item = 0; item < media_.size(); ++item) {
      const std::size_t begin = std::max(first, first_[item]);
      const std::size_t end = std::min(first + count, first_[item + 1]);
      if (begin < end) visit(item, begin - first_[item], begin - first, end - begin);
    }
  }

  std::size_t patches_of(std::size_t item) const { return first_[item + 1] - first_[item]; }
  MatrixView<const float> pixels_of(std::size_t item) const {
    return {media_[item]->pixels.data(), patches_of(item), patch_values_};
  }

  // Pixels of a range: in place when one item holds it all, else copied together.
  MatrixView<const float> pixels(std::size_t first, std::size_t count) {
    MatrixView<const float> rows;
    visit_items(first, count, [&](std::size_t item, std::size_t row, std::size_t, std::size_t n) {
      if (n == count) rows = pixels_of(item).rows_from(row, count);
    });
    if (rows.data != nullptr) return rows;
    gathered_ = FloatMatrix(count, patch_values_);
    visit_items(first, count,
                [&](std::size_t item, std::size_t row, std::size_t at, std::size_t n) {
                  const MatrixView<const float> from = pixels_of(item).rows_from(row, n);
                  std::copy_n(from.data, n * patch_values_, gathered_.row(at).data());
                });
    return gathered_.view();
  }

 private:
  std::span<const PreparedMedia* const> media_;
  std::size_t patch_values_;
  std::vector<std::size_t> first_{0};  // Of each item, and the end.
  std::vector<VisionSegment> segments_;
  FloatMatrix gathered_;
};

// Hands the rows of a call on to the media they belong to.
class VisionTracer {
 public:
  VisionTracer(TraceRecorder& trace, const PatchList& patches) : trace_(trace), patches_(patches) {}

  void add_inputs(std::span<const PreparedMedia* const> media) {
    for (std::size_t i = 0; i < media.size(); ++i) {
      const MediaItem& item = media[i]->item;
      trace_.add(fmt::format("vision.{}.grid_thw", i), {3},
                 std::vector<std::int64_t>{static_cast<std::int64_t>(item.grid_t),
                                           static_cast<std::int64_t>(item.grid_h),
                                           static_cast<std::int64_t>(item.grid_w)});
      trace_.add(fmt::format("vision.{}.pixel_values", i), patches_.pixels_of(i));
    }
  }

  VisionObserver observer(const VisionGroup& group) {
    return {.patch_embeddings = [=, this](auto rows) { add("patch_embeddings", group, 1, rows); },
            .block_output =
                [=, this](std::size_t block, auto rows) {
                  add(fmt::format("blocks.{}.output", block), group, 1, rows);
                }};
  }

  // `merged` patches make a row.
  void add(const std::string& name, const VisionGroup& group, std::size_t merged,
           MatrixView<const float> rows) {
    patches_.visit_items(group.first_patch, group.patches,
                         [&](std::size_t item, std::size_t row, std::size_t at, std::size_t n) {
                           trace_.add_rows(fmt::format("vision.{}.{}", item, name),
                                           patches_.patches_of(item) / merged, row / merged,
                                           rows.rows_from(at / merged, n / merged));
                         });
  }

 private:
  TraceRecorder& trace_;
  const PatchList& patches_;
};

}  // namespace

struct VisionRun::State {
  State(Backend& the_backend, const VisionConfig& config,
        std::span<const PreparedMedia* const> the_media, TraceRecorder* trace)
      : backend(the_backend),
        media(the_media.begin(), the_media.end()),
        patches(media, config.patch_values()),
        groups(pack_vision_segments(patches.segments(), the_backend.vision_patches())),
        merged(config.spatial_merge_size * config.spatial_merge_size) {
    if (trace != nullptr) tracer.emplace(*trace, patches).add_inputs(media);
    for (std::size_t item = 0; item < media.size(); ++item) {
      features.emplace_back(patches.patches_of(item) / merged, config.out_hidden_size);
    }
  }

  Backend& backend;
  const std::vector<const PreparedMedia*> media;
  PatchList patches;
  const std::vector<VisionGroup> groups;
  const std::size_t merged;  // Patches that make a token.
  std::optional<VisionTracer> tracer;
  std::vector<FloatMatrix> features;
  std::size_t next_group = 0;
};

VisionRun::VisionRun(Backend& backend, const VisionConfig& config,
                     std::span<const PreparedMedia* const> media, TraceRecorder* trace)
    : state_(std::make_unique<State>(backend, config, media, trace)) {}

VisionRun::~VisionRun() = default;

bool VisionRun::is_done() const { return state_->next_group == state_->groups.size(); }

std::size_t VisionRun::remaining_patches() const {
  std::size_t patches = 0;
  for (const VisionGroup& group : std::span(state_->groups).subspan(state_->next_group)) {
    patches += group.patches;
  }
  return patches;
}

void VisionRun::step(const ComputeContext& context) {
  State& run = *state_;
  const VisionGroup& group = run.groups[run.next_group];
  FloatMatrix rows(group.patches / run.merged, run.features[0].columns());
  run.backend.encode_vision(
      context,
      {.pixels = run.patches.pixels(group.first_patch, group.patches),
       .segments = run.patches.segments().subspan(group.first_segment, group.segment_count),
       .features = rows.view()},
      run.tracer ? run.tracer->observer(group) : VisionObserver{});
  if (run.tracer) run.tracer->add("features", group, run.merged, rows.view());
  run.patches.visit_items(
      group.first_patch, group.patches,
      [&](std::size_t item, std::size_t row, std::size_t at, std::size_t count) {
        std::copy_n(rows.row(at / run.merged).data(), count / run.merged * rows.columns(),
                    run.features[item].row(row / run.merged).data());
      });
  ++run.next_group;
}

std::vector<FloatMatrix> VisionRun::take_features() { return std::move(state_->features); }

}  // namespace clefkit
