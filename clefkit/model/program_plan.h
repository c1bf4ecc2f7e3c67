#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "clefkit/model/config.h"

namespace clefkit {

// How the text layers are cut into programs (bundle.md, "Program plan").
enum class PlanKind {
  kGrouped,  // A run of linear attention layers is one program.
  kSplit,    // One program a layer: easier to debug, more of them.
};

enum class ProgramKind {
  kRun,        // Linear attention layers with their MLPs, after the MLP of the layer before them.
  kAttention,  // One full attention layer without its MLP; one program per context length.
  kMlp,        // An MLP alone: after the last full attention layer the `tail`.
  kVision,     // One block of the vision encoder.
};

// Context lengths of the attention programs, in tokens.
inline constexpr std::size_t kAttentionContexts[] = {1024, 2048, 4096, 8192, 16384};

// The weights of one program, or of the programs that share them: one blob file.
struct PlannedProgram {
  std::string name;  // "run-00-02", "attention-03", "mlp-03", "tail", "vision-07"
  ProgramKind kind = ProgramKind::kRun;
  std::vector<std::size_t> layers;   // Layers, or the block, that have a part in it, ascending.
  std::vector<std::string> tensors;  // The release's names, in the order of their use.

  // An attention layer has one program for each context length.
  std::size_t program_count() const;
  // Of one of them: "attention-03@1024"; without a context, which is 0, the name alone.
  std::string program_name(std::size_t context) const;
};

// Every text program in the order of their use; each text layer tensor is in exactly one.
std::vector<PlannedProgram> plan_programs(const ModelConfig& config, PlanKind kind);

// One program for each block of the vision encoder; none when the model has none.
std::vector<PlannedProgram> plan_vision_programs(const ModelConfig& config);

std::size_t program_count(const std::vector<PlannedProgram>& programs);

}  // namespace clefkit
