#include <sandbox.h>
#include <unistd.h>

#include <string>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/resource_limits.h"
#include "clefkit/media/decoder/sandbox.h"

// sandbox_init is marked deprecated since macOS 10.8; browsers still use it, and nothing replaced
// it for a program without an application bundle.
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

namespace clefkit::decoder {

void close_everything() {
  const long limit = sysconf(_SC_OPEN_MAX);
  for (int file = 3; file < limit; ++file) close(file);
}

void enter_sandbox(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  limit_resources(memory_bytes, cpu_seconds);
  char* message = nullptr;
  if (sandbox_init(kSBXProfilePureComputation, SANDBOX_NAMED, &message) != 0) {
    const std::string reason = message ? message : "no reason given";
    sandbox_free_error(message);
    throw_error(ErrorCode::kUnavailable, "sandbox", "sandbox_init: {}, expected success", reason);
  }
}

}  // namespace clefkit::decoder
