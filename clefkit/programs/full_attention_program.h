#pragma once

#include <cstddef>

#include "clefkit/model/config.h"
#include "clefkit/programs/attention.h"
#include "clefkit/programs/mlp_program.h"
#include "clefkit/programs/program_builder.h"

namespace clefkit {

// What a full attention layer reads beside its weights. C tokens fit into the cache.
struct FullAttentionInput {
  ProgramBuilder::Name x;         // [1, hidden_size, 1, S]
  ProgramBuilder::Name cos, sin;  // [1, rotary_dim / 2, 1, S]
  // [1, 1, S, C + S], added to the scores: 0 where a token sees a place, else kMaskedScore.
  // The C places of the cache come first.
  ProgramBuilder::Name mask;
  ProgramBuilder::Name k_cache, v_cache;  // [1, kv_dim, 1, C]
};

struct FullAttentionOutput {
  ProgramBuilder::Name x;
  ProgramBuilder::Name k, v;  // [1, kv_dim, 1, S]: for the cache.
};

// x + the gated attention of its norm (model.md 2.3), without the MLP.
FullAttentionOutput emit_full_attention(ProgramBuilder& builder, const FullAttentionInput& input,
                                        const TextConfig& config, std::size_t layer,
                                        const FindWeight& find_weight);

}  // namespace clefkit
