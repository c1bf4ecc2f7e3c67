#include "clefkit/kernels/instruction_set.h"

#include <hwy/highway.h>

#include <cstdint>

namespace clefkit {

std::string instruction_set() {
  // Better ones have lower bits; what this build lacks does not count.
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets == 0 ? "none" : hwy::TargetName(targets & -targets);
}

}  // namespace clefkit
