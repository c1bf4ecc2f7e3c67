#pragma once

#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/bundle/manifest.h"
#include "clefkit/model/blob_weight.h"
#include "clefkit/model/config.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/model/text_scales.h"

namespace clefkit {

struct EmittedProgram {
  ProgramRecord record;
  std::string text;  // MIL.
};

// The programs of one entry of the plan: an attention layer has one for each context. `blob` is
// its weight file, at `blob_path` of the bundle, and `weights` what lies where in it. Throws
// Error(kUnsupported) with program, line and name for what the checker finds.
std::vector<EmittedProgram> emit_text_programs(const TextConfig& config,
                                               const PlannedProgram& planned,
                                               const std::vector<BlobWeight>& weights, Bytes blob,
                                               const std::string& blob_path,
                                               const MlpFactors& mlp_factors);

}  // namespace clefkit
