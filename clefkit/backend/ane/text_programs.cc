#include "clefkit/backend/ane/text_programs.h"

#include <algorithm>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/mil/printer.h"
#include "clefkit/programs/text_program.h"

namespace clefkit::ane {
namespace {

bool has_programs(const Model& model, const std::vector<PlannedProgram>& plan) {
  const auto has = [&](const std::string& name) {
    return std::ranges::find(model.programs, name, &ProgramRecord::name) != model.programs.end();
  };
  return std::ranges::all_of(plan, [&](const PlannedProgram& planned) {
    if (planned.kind != ProgramKind::kAttention) return has(planned.name);
    return std::ranges::all_of(kAttentionContexts, [&](std::size_t context) {
      return has(planned.program_name(context));
    });
  });
}

}  // namespace

TextPrograms::TextPrograms(const Model& model, const ProgramForm& form)
    : model_(model), spellings_(form.spellings), plan_(plan_programs(model.config, form.plan)) {
  if (model.programs.empty() || has_programs(model, plan_)) return;
  plan_ = plan_programs(model.config,
                        form.plan == PlanKind::kSplit ? PlanKind::kGrouped : PlanKind::kSplit);
  if (has_programs(model, plan_)) return;
  throw_error(ErrorCode::kCorruptData, model.name,
              "{} programs that are of neither plan, grouped or split", model.programs.size());
}

ProgramSource TextPrograms::source(std::size_t program, std::size_t context) {
  const PlannedProgram& planned = plan_[program];
  if (!model_.programs.empty()) return from_bundle(planned, context);
  std::unique_ptr<ProgramWeights>& weights = weights_[program];
  if (weights == nullptr) weights = std::make_unique<ProgramWeights>(model_, planned);
  return {planned.program_name(context), emitted(planned, context, weights->finder()),
          weights->file()};
}

std::string TextPrograms::emitted(const PlannedProgram& planned, std::size_t context,
                                  const FindWeight& find_weight) const {
  const TextProgramOptions options{
      .spellings = spellings_, .weight_path = mil::kWeightPath, .mlp_factors = model_.mlp_factors};
  return mil::to_text(
      emit_text_program(model_.config.text, planned, context, find_weight, options));
}

ProgramSource TextPrograms::from_bundle(const PlannedProgram& planned, std::size_t context) {
  const std::string name = planned.program_name(context);
  const ProgramRecord& record = *std::ranges::find(model_.programs, name, &ProgramRecord::name);
  auto file = files_.find(record.weights);
  if (file == files_.end()) {
    file = files_.try_emplace(record.weights, model_.directory / record.weights).first;
  }
  const auto find = [&](const std::string& tensor) -> const BlobWeight& {
    const auto weight = std::ranges::find_if(model_.blob_weights, [&](const BlobWeight& entry) {
      return entry.name == tensor && entry.blob == record.weights;
    });
    if (weight != model_.blob_weights.end()) return *weight;
    throw_error(ErrorCode::kCorruptData, model_.name, "{} has no {}, which its program {} needs",
                record.weights, tensor, name);
  };
  return {name,
          spellings_ == Spellings{} ? read_file(model_.directory / record.mil, kMaxProgramBytes)
                                    : emitted(planned, context, find),
          file->second.bytes(), model_.directory / record.weights};
}

}  // namespace clefkit::ane
