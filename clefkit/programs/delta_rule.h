#pragma once

#include <cstdint>
#include <string_view>

#include "clefkit/programs/program_builder.h"

namespace clefkit {

// Tokens that one program call takes, and of them those that are solved together. The inverse of a
// unit triangular matrix of 8 is three factors exactly; of 64 it has overflowed for others (ane.md
// 5.4).
inline constexpr std::int64_t kProgramTokens = 128;
inline constexpr std::int64_t kSubChunkTokens = 8;

struct DeltaRuleShape {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;  // A multiple of key_heads.
  std::int64_t key_head_dim = 0;
  std::int64_t value_head_dim = 0;
};

struct DeltaRuleInput {
  ProgramBuilder::Name q, k;     // [1, key_heads · key_head_dim, 1, S], normalized and scaled.
  ProgramBuilder::Name v;        // [1, value_heads · value_head_dim, 1, S]
  ProgramBuilder::Name g, beta;  // [1, value_heads, 1, S]; both 0 at tokens that are padding.
  ProgramBuilder::Name state;    // [1, value_heads, key_head_dim, value_head_dim]
};

struct DeltaRuleOutput {
  ProgramBuilder::Name o;      // [1, value_heads · value_head_dim, 1, S]
  ProgramBuilder::Name state;  // As the input's, after the last token.
};

// The gated delta rule (model.md 2.2) in its chunked form: what tokens of a sub-chunk do to each
// other for all sub-chunks at once, then the state from one to the next. S is a multiple of 8.
// Decays are exponentials of sums of g alone, never of differences of sums: those would lose what
// matters behind a token that decays strongly.
DeltaRuleOutput emit_delta_rule(ProgramBuilder& builder, const DeltaRuleShape& shape,
                                const DeltaRuleInput& input, std::string_view hint);

}  // namespace clefkit
