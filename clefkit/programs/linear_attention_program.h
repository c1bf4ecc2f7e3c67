#pragma once

#include <cstddef>

#include "clefkit/model/config.h"
#include "clefkit/programs/mlp_program.h"
#include "clefkit/programs/program_builder.h"

namespace clefkit {

// What a linear attention layer reads beside its weights.
struct LinearAttentionInput {
  ProgramBuilder::Name x;                // [1, hidden_size, 1, S]
  ProgramBuilder::Name conv_state;       // [1, conv_channels, 1, kernel - 1]: the tokens before.
  ProgramBuilder::Name recurrent_state;  // [1, value_heads, key_head_dim, value_head_dim]
  // [1, 1, 1, S]: 1 for a token, 0 for padding, which follows the last token.
  ProgramBuilder::Name valid;
  // [1, 1, kernel - 1 + S, kernel - 1]: ones that pick the next conv_state out of the one before
  // and the S tokens, the last three that are real.
  ProgramBuilder::Name conv_select;
};

struct LinearAttentionOutput {
  ProgramBuilder::Name x, conv_state, recurrent_state;
};

// x + the Gated DeltaNet mixer of its norm (model.md 2.2).
LinearAttentionOutput emit_linear_attention(ProgramBuilder& builder,
                                            const LinearAttentionInput& input,
                                            const TextConfig& config, std::size_t layer,
                                            const FindWeight& find_weight);

}  // namespace clefkit
