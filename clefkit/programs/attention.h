#pragma once

#include <string_view>

#include "clefkit/programs/program_builder.h"

// What attention of text and of pictures has in common.
namespace clefkit {

// What the mask adds to the score of a place that must not be seen: exp of it is nothing, and no
// score takes it out of FP16.
inline constexpr float kMaskedScore = -30000.0f;

// Rotary embedding: the first channels of x, [heads, head_dim, 1, S], are turned by halves against
// each other, as many as `cos` and `sin`, [1, n, 1, S], have angles for: 2 n. The rest stays.
ProgramBuilder::Name emit_rotated(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                  const ProgramBuilder::Name& cos, const ProgramBuilder::Name& sin,
                                  std::string_view hint);

// M query heads for each of N key and value heads; P places are seen by S rows.
struct AttentionInput {
  ProgramBuilder::Name queries;       // [N, M, head_dim, S], scaled already: so scores stay small.
  ProgramBuilder::Name keys, values;  // [N, 1, head_dim, P]
  // [1, 1, S, P], added to the scores: 0 where a row sees a place, else kMaskedScore.
  ProgramBuilder::Name mask;
};

// The values' means by softmax(queriesᵀ · keys + mask): [N, M, head_dim, S]. Probabilities are 16
// times as large while they are summed, so that those of many places are no subnormals.
ProgramBuilder::Name emit_attention(ProgramBuilder& builder, const AttentionInput& input,
                                    std::string_view hint);

}  // namespace clefkit
