#pragma once

// clang-format off
#include "clefkit/kernels/simd_targets.h"  // Before Highway.
// clang-format on
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace clefkit {

// For tests: runs `body` once with each instruction set this machine has, as if it were the best.
template <typename Body>
void for_every_target(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace clefkit
