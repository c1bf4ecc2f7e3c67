#include "clefkit/media/decoder/resource_limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "clefkit/base/error.h"

namespace clefkit::decoder {
namespace {

template <typename Resource>
void limit(Resource resource, const char* name, std::uint64_t soft, std::uint64_t hard) {
  const rlimit value{static_cast<rlim_t>(soft), static_cast<rlim_t>(hard)};
  if (setrlimit(resource, &value) != 0)
    throw_error(ErrorCode::kUnavailable, "sandbox", "setrlimit({}, {}): {}, expected success", name,
                soft, std::strerror(errno));
}

}  // namespace

void limit_resources(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  limit(RLIMIT_CORE, "CORE", 0, 0);
  limit(RLIMIT_FSIZE, "FSIZE", 0, 0);
  limit(RLIMIT_CPU, "CPU", cpu_seconds, cpu_seconds + 1);
#ifndef CLEFKIT_SANITIZED  // A sanitizer takes terabytes of address space, and opens /proc.
  limit(RLIMIT_NOFILE, "NOFILE", 0, 0);
  limit(RLIMIT_AS, "AS", memory_bytes, memory_bytes);
#else
  (void)memory_bytes;
#endif
}

}  // namespace clefkit::decoder
