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

TextPrograms::TextPrograms(const Model& model, PlanKind plan)
    : model_(model), plan_(plan_programs(model.config, plan)) {
  if (model.programs.empty() || has_programs(model, plan_)) return;
  plan_ =
      plan_programs(model.config, plan == PlanKind::kSplit ? PlanKind::kGrouped : PlanKind::kSplit);
  if (has_programs(model, plan_)) return;
  throw_error(ErrorCode::kCorruptData, model.name,
              "{} programs that are of neither plan, grouped or split", model.programs.size());
}

ProgramSource TextPrograms::source(std::size_t program, std::size_t context) {
  const PlannedProgram& planned = plan_[program];
  const std::string name = planned.program_name(context);
  if (!model_.programs.empty()) return from_bundle(name);
  std::unique_ptr<ProgramWeights>& weights = weights_[program];
  if (weights == nullptr) weights = std::make_unique<ProgramWeights>(model_, planned);
  TextProgramOptions options;
  options.weight_path = mil::kWeightPath;
  options.mlp_factors = model_.mlp_factors;
  const auto find = [&](const std::string& tensor) -> const BlobWeight& {
    return weights->find(tensor);
  };
  return {name,
          mil::to_text(emit_text_program(model_.config.text, planned, context, find, options)),
          weights->file()};
}

ProgramSource TextPrograms::from_bundle(const std::string& name) {
  const ProgramRecord& record = *std::ranges::find(model_.programs, name, &ProgramRecord::name);
  auto file = files_.find(record.weights);
  if (file == files_.end()) {
    file = files_.try_emplace(record.weights, model_.directory / record.weights).first;
  }
  return {name, read_file(model_.directory / record.mil, kMaxProgramBytes), file->second.bytes(),
          model_.directory / record.weights};
}

}  // namespace clefkit::ane
