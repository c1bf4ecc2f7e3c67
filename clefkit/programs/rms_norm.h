#pragma once

#include <string_view>

#include "clefkit/programs/program_builder.h"

namespace clefkit {

// Tokens of [N, C, 1, S], each times a factor of [N, 1, 1, S] that makes its largest value 64:
// their squares stay within FP16, and large enough that their shares are no subnormals
// (ane.md 5.3). The factor is at most 2^15, so a token whose largest value is below 2^-9 stays
// smaller.
struct ScaledTokens {
  static constexpr double kLargest = 64;
  ProgramBuilder::Name x, factor;
};
ScaledTokens emit_scaled_tokens(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                std::string_view hint);

// x / sqrt(mean + eps · factor²) for tokens with that factor and the mean of their squares.
ProgramBuilder::Name emit_over_root(ProgramBuilder& builder, const ScaledTokens& tokens,
                                    const ProgramBuilder::Name& mean, double epsilon,
                                    std::string_view hint);

// x / sqrt(mean(x²) + eps) over the channels, for x of [N, C, 1, S]. Exact but for rounding down to
// tokens whose largest value is 2^-9; below it the squares lose bits.
ProgramBuilder::Name emit_normalized(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                     double epsilon, std::string_view hint);

// The same times (1 + w), for a weight w of C values that is stored zero-centred (model.md 1.3).
ProgramBuilder::Name emit_rms_norm(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                   const BlobWeight& weight, double epsilon, std::string_view hint);

}  // namespace clefkit
