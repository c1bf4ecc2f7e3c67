#pragma once

#include <string_view>

#include "clefkit/programs/program_builder.h"

namespace clefkit {

// x / sqrt(mean(x²) + eps) over the channels, for x of [N, C, 1, S]. Each token is first scaled so
// that its largest value is 64, and eps with it: the squares then stay within FP16, and large
// enough that their shares are no subnormals, whatever the size of x (ane.md 5.3). Exact but for
// rounding down to tokens whose largest value is 2^-9; below it the squares lose bits.
ProgramBuilder::Name emit_normalized(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                     double epsilon, std::string_view hint);

// The same times (1 + w), for a weight w of C values that is stored zero-centred (model.md 1.3).
ProgramBuilder::Name emit_rms_norm(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                   const BlobWeight& weight, double epsilon, std::string_view hint);

}  // namespace clefkit
