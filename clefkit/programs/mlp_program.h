#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "clefkit/model/config.h"
#include "clefkit/programs/program_builder.h"

namespace clefkit {

// Where the weight of that name lies.
using FindWeight = std::function<const BlobWeight&(const std::string& name)>;

// x + down(silu(gate(h)) · up(h) · scale) / scale with h = the post-attention norm of x, for layer
// `layer`: [1, hidden_size, 1, S] in and out. `scale`, a power of two, keeps what goes into the
// down-projection out of FP16's subnormals (bundle.md, "Program plan").
ProgramBuilder::Name emit_mlp(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                              const TextConfig& config, std::size_t layer,
                              const FindWeight& find_weight, double scale);

}  // namespace clefkit
