#include "clefkit/convert/text_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/mil/checker.h"
#include "clefkit/mil/printer.h"
#include "clefkit/programs/text_program.h"

namespace clefkit {
namespace {

std::vector<ProgramPort> ports_of(const std::vector<mil::Variable>& variables) {
  std::vector<ProgramPort> ports;
  for (const mil::Variable& variable : variables) {
    ports.push_back({variable.name, {variable.type.shape.begin(), variable.type.shape.end()}});
  }
  return ports;
}

std::string_view kind_of(const PlannedProgram& planned) {
  switch (planned.kind) {
    case ProgramKind::kRun:
      return "run";
    case ProgramKind::kAttention:
      return "attention";
    case ProgramKind::kVision:
      return "vision";
    case ProgramKind::kMlp:
      break;
  }
  return planned.name == "tail" ? "tail" : "mlp";
}

}  // namespace

std::vector<EmittedProgram> emit_text_programs(const TextConfig& config,
                                               const PlannedProgram& planned,
                                               const std::vector<BlobWeight>& weights, Bytes blob,
                                               const std::string& blob_path,
                                               const MlpFactors& mlp_factors) {
  const mil::WeightBlobReader reader(blob, blob_path);
  const auto find = [&](const std::string& name) -> const BlobWeight& {
    return *std::ranges::find(weights, name, &BlobWeight::name);
  };
  TextProgramOptions options;
  options.weight_path = mil::kWeightPath;
  options.mlp_factors = mlp_factors;
  std::vector<std::uint64_t> contexts{0};
  if (planned.kind == ProgramKind::kAttention) {
    contexts.assign(std::begin(kAttentionContexts), std::end(kAttentionContexts));
  }
  std::vector<EmittedProgram> emitted;
  for (const std::uint64_t context : contexts) {
    const std::string name = planned.program_name(context);
    const mil::Program program = emit_text_program(config, planned, context, find, options);
    mil::require_sound(program, {{mil::kWeightPath, &reader}}, ErrorCode::kUnsupported, name);
    const mil::Function& function = program.functions.at(0);
    ProgramRecord record{.name = name,
                         .kind = std::string(kind_of(planned)),
                         .layers = {planned.layers.begin(), planned.layers.end()},
                         .context = context,
                         .mil = fmt::format("programs/text/{}.mil", name),
                         .weights = blob_path,
                         .inputs = ports_of(function.inputs),
                         .outputs = ports_of(mil::output_variables(function))};
    emitted.push_back({std::move(record), mil::to_text(program)});
  }
  return emitted;
}

}  // namespace clefkit
