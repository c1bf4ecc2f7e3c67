#include "clefkit/kernels/lut6_kernels.h"

#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace clefkit {
namespace {

#if defined(__x86_64__)
// Not among the names that clang 14's __builtin_cpu_supports knows.
bool has_avx_vnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 4) != 0;
}
#elif defined(__aarch64__)
struct ArmFeatures {
  bool dot_products = false;
  bool i8mm = false;
};

#if defined(__APPLE__)
bool has_feature(const char* name) {
  int value = 0;
  std::size_t bytes = sizeof(value);
  return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value != 0;
}
#endif

ArmFeatures arm_features() {
#if defined(__linux__)
  return {.dot_products = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0,
          .i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0};
#elif defined(__APPLE__)
  // Every Mac with such a processor has dot products; macOS 11 has no name to ask by.
  return {.dot_products = true, .i8mm = has_feature("hw.optional.arm.FEAT_I8MM")};
#else
  return {};
#endif
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
#elif defined(__aarch64__)
    const ArmFeatures features = arm_features();
    if (features.i8mm) found.push_back(&kLut6NeonI8mmKernels);
    if (features.dot_products) found.push_back(&kLut6NeonDotKernels);
    found.push_back(&kLut6NeonKernels);
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
