#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "clefkit/mil/program.h"
#include "clefkit/model/config.h"
#include "clefkit/programs/mlp_program.h"
#include "clefkit/programs/program_builder.h"

namespace clefkit {

// The patches of one call of a vision program: a picture of 262,144 pixels, or several smaller
// ones.
inline constexpr std::int64_t kVisionPatches = 1024;

struct VisionBlockOptions {
  Spellings spellings{};
  std::string weight_path{};  // What BLOBFILE names.
  std::int64_t patches = kVisionPatches;
};

// One block of the vision encoder (model.md 4) as a program; all ports FP16, S patches:
//
//   x         [1, hidden_size, 1, S]
//   cos, sin  [1, head_dim / 2, 1, S]: of the angles by row, then by column
//   mask      [1, 1, S, S]: 0 where a patch (third axis) sees another, else kMaskedScore
//   x_out     [1, hidden_size, 1, S]
//
// Patches see their own picture or pair of frames only. Padding must see something, itself for
// example, or it has no softmax; nothing else depends on it.
mil::Program emit_vision_block(const VisionConfig& config, std::size_t block,
                               const FindWeight& find_weight, const VisionBlockOptions& options);

}  // namespace clefkit
