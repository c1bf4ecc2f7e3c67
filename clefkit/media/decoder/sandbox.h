#pragma once

#include <cstdint>

namespace clefkit::decoder {

// First thing in the process: no files but standard input, output and error, no core dumps, no
// privileges to gain, and no life after the parent's.
void close_everything();

// Before the first byte from outside is read; there is no way back. From here on the process can
// compute, use memory up to `memory_bytes`, and read and write its three open files. Throws
// Error(kUnavailable) when the system refuses: nothing is decoded without it.
void enter_sandbox(std::uint64_t memory_bytes, std::uint64_t cpu_seconds);

}  // namespace clefkit::decoder
