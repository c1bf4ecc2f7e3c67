#pragma once

#include <cstddef>
#include <string>

#include "clefkit/mil/program.h"
#include "clefkit/model/config.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/model/text_scales.h"
#include "clefkit/programs/mlp_program.h"
#include "clefkit/programs/program_builder.h"

namespace clefkit {

// Goes up when the same plan is written as another text: a conversion that was stopped before then
// begins anew.
inline constexpr int kTextProgramRevision = 2;

struct TextProgramOptions {
  Spellings spellings{};
  std::string weight_path{};  // What BLOBFILE names.
  MlpFactors mlp_factors{};
};

// One program of the plan (bundle.md, "Program plan"), of kProgramTokens tokens, all ports FP16.
// `context` is an attention program's: the places of its cache and the new tokens together.
//
//   run        x, valid, conv_select, and per linear attention layer conv_state_LL and
//              recurrent_state_LL -> x_out, and the states again with _out
//   attention  x, cos, sin, mask, k_cache, v_cache -> x_out, k_out, v_out
//   mlp, tail  x -> x_out
//
// Their shapes are those of emit_linear_attention and emit_full_attention.
mil::Program emit_text_program(const TextConfig& config, const PlannedProgram& planned,
                               std::size_t context, const FindWeight& find_weight,
                               const TextProgramOptions& options);

}  // namespace clefkit
