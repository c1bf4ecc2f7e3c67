#pragma once

#include <string_view>

#include "clefkit/programs/program_builder.h"

namespace clefkit {

// torch.nn.LayerNorm over the channels of [N, C, 1, S], with a weight and a bias of C values.
// Tokens are scaled as for the RMS norm, so that it is exact but for rounding down to a largest
// value of 2^-9. Channels must differ by more than FP16 rounds them: of a token whose mean is far
// above their spread, what is left is what the input's rounding left.
ProgramBuilder::Name emit_layer_norm(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                     const BlobWeight& weight, const BlobWeight& bias,
                                     double epsilon, std::string_view hint);

}  // namespace clefkit
