#pragma once

#include <span>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/base/executor.h"
#include "clefkit/engine/float_matrix.h"
#include "clefkit/engine/media.h"
#include "clefkit/engine/trace.h"
#include "clefkit/model/config.h"

namespace clefkit {

// Runs the vision encoder over media, packed into calls of the backend's size, and returns the
// features of each, [tokens, hidden_size]. `trace` is null or is given `vision.<i>.…` (cli.md) of
// the i-th.
std::vector<FloatMatrix> encode_vision(const ComputeContext& context, Backend& backend,
                                       const VisionConfig& config,
                                       std::span<const PreparedMedia* const> media,
                                       TraceRecorder* trace);

}  // namespace clefkit
