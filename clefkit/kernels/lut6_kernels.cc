#include "clefkit/kernels/lut6_kernels.h"

#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace clefkit {
namespace {

#if defined(__x86_64__)
// Not among the names that clang 14's __builtin_cpu_supports knows.
bool has_avx_vnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 4) != 0;
}
#endif

}  // namespace

std::span<const Lut6Kernels* const> supported_lut6_kernels() {
  static const std::vector<const Lut6Kernels*> kernels = [] {
    std::vector<const Lut6Kernels*> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
          __builtin_cpu_supports("avx512vnni")) {
        found.push_back(&kLut6Avx512Kernels);
      }
      if (has_avx_vnni()) found.push_back(&kLut6AvxVnniKernels);
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
