#include "clefkit/kernels/lut6_kernels.h"

#include <vector>

namespace clefkit {

std::span<const Lut6Kernels* const> supported_lut6_kernels() {
  static const std::vector<const Lut6Kernels*> kernels = [] {
    std::vector<const Lut6Kernels*> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      found.push_back(&kLut6Avx2Kernels);
    }
#endif
    found.push_back(&kLut6ScalarKernels);
    return found;
  }();
  return kernels;
}

const Lut6Kernels* fastest_lut6_kernels() {
  const Lut6Kernels* const fastest = supported_lut6_kernels().front();
  return fastest == &kLut6ScalarKernels ? nullptr : fastest;
}

}  // namespace clefkit
