#pragma once

#include <cstdint>

namespace clefkit::decoder {

// The part of the sandbox that POSIX has: address space, processor time, no new files, no writing
// to files, no processes, no core dumps. Throws Error(kUnavailable).
void limit_resources(std::uint64_t memory_bytes, std::uint64_t cpu_seconds);

}  // namespace clefkit::decoder
