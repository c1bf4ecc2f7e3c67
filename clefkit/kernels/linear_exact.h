#pragma once

#include <span>

#include "clefkit/kernels/linear.h"

namespace clefkit {

// apply_linears at Precision::kExact, for any form of weights: panels of decoded weights times
// packed tokens, in float32.
void apply_linears_exact(const ComputeContext& context, MatrixView<const float> x,
                         std::span<const LinearOutput> outputs);

}  // namespace clefkit
