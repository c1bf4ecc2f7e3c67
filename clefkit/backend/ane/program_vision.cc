#include "clefkit/backend/ane/program_vision.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "clefkit/backend/ane/half_rows.h"
#include "clefkit/backend/vision_packing.h"
#include "clefkit/base/float_matrix.h"
#include "clefkit/mil/printer.h"
#include "clefkit/programs/attention.h"

namespace clefkit::ane {

ProgramVision::ProgramVision(const Model& model, ProgramSet& programs, std::size_t first_program,
                             const Spellings& spellings, std::size_t patches)
    : model_(model),
      programs_(programs),
      first_program_(first_program),
      patches_(patches),
      spellings_(spellings),
      embedding_(model),
      merger_(model),
      plan_(plan_vision_programs(model.config)),
      weights_(plan_.size()) {}

bool ProgramVision::holds(std::span<const VisionSegment> segments) const {
  return std::ranges::all_of(
      segments, [&](const VisionSegment& segment) { return segment.patches() <= patches_; });
}

ProgramSource ProgramVision::source(std::size_t block) {
  std::unique_ptr<ProgramWeights>& weights = weights_[block];
  if (weights == nullptr) weights = std::make_unique<ProgramWeights>(model_, plan_[block]);
  const mil::Program program = emit_vision_block(
      model_.config.vision, block, weights->finder(),
      {.spellings = spellings_, .weight_path = mil::kWeightPath, .patches = mil::dim(patches_)});
  return {plan_[block].name, mil::to_text(program), weights->file()};
}

std::vector<ProgramVision::Call> ProgramVision::calls_of(std::span<const VisionSegment> segments,
                                                         MatrixView<const float> x,
                                                         MatrixView<const float> cosines,
                                                         MatrixView<const float> sines) const {
  std::vector<Call> calls;
  FloatMatrix mask(patches_, patches_);
  for (const VisionGroup& group : pack_vision_segments(segments, patches_)) {
    Call& call = calls.emplace_back();
    call.first_patch = group.first_patch;
    call.patches = group.patches;
    const auto rows_of = [&](MatrixView<const float> all) {
      return all.rows_from(group.first_patch, group.patches);
    };
    call.x.resize(patches_ * x.columns);
    copy_rows(rows_of(x), {call.x.data(), group.patches, x.columns});
    call.cos = as_channels(rows_of(cosines), patches_);
    call.sin = as_channels(rows_of(sines), patches_);
    fill_segment_mask(segments.subspan(group.first_segment, group.segment_count), kMaskedScore,
                      mask.view());
    call.mask.resize(patches_ * patches_);
    copy_rows(mask.view(), {call.mask.data(), patches_, patches_});
  }
  return calls;
}

void ProgramVision::run(std::size_t block, Call& call) {
  LoadedProgram& loaded = programs_.get({first_program_ + block, 0}, [&] { return source(block); });
  const MatrixView<Half> x(call.x.data(), patches_, model_.config.vision.hidden_size);
  loaded.input("x").write_columns(0, x);
  loaded.input("cos").write(call.cos);
  loaded.input("sin").write(call.sin);
  loaded.input("mask").write(call.mask);
  programs_.evaluate(loaded);
  loaded.output("x_out").read_columns(0, x);
}

void ProgramVision::encode(const ComputeContext& context, const VisionBatch& batch,
                           const VisionObserver& observer) {
  assert(holds(batch.segments));
  const std::size_t hidden_size = model_.config.vision.hidden_size;
  FloatMatrix x(batch.pixels.rows, hidden_size);
  FloatMatrix cosines(x.rows(), embedding_.angles()), sines(x.rows(), embedding_.angles());
  embedding_.apply(context, batch, observer, x.view(), cosines.view(), sines.view());

  std::vector<Call> calls = calls_of(batch.segments, x.view(), cosines.view(), sines.view());
  const auto copy_results = [&] {
    for (const Call& call : calls) {
      copy_rows(MatrixView<const Half>(call.x.data(), call.patches, hidden_size),
                x.view().rows_from(call.first_patch, call.patches));
    }
  };
  for (std::size_t block = 0; block < plan_.size(); ++block) {
    for (Call& call : calls) {
      if (context.cancel != nullptr) context.cancel->throw_if_cancelled();
      run(block, call);
    }
    if (!observer.block_output) continue;
    copy_results();
    observer.block_output(block, x.view());
  }
  copy_results();
  FloatMatrix hidden(batch.features.rows, merger_.merged_size());
  merger_.apply(context, x.view(), hidden.view(), batch.features);
}

}  // namespace clefkit::ane
