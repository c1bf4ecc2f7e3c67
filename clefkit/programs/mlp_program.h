#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "clefkit/mil/program.h"
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

// The factor of a layer whose down-projection was measured: no input was larger than
// `largest_activation`, and no sum of products, in whatever order, larger than `largest_sum`. The
// largest power of two up to kLargestMlpFactor that keeps both 8 times below 2^15; 1 without a
// measurement, or when nothing was ever there (0).
std::uint64_t choose_mlp_factor(double largest_activation, double largest_sum);

// The factor that the layer's MLP has in a program of emit_mlp's, or one that was written and read
// since. Throws Error(kCorruptData) when what was scaled up is not scaled back by as much.
double mlp_factor_of(const mil::Function& function, std::size_t layer);

}  // namespace clefkit
