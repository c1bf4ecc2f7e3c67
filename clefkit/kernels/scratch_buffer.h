#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace clefkit {

// Memory that grows and is kept, zeroed when it grows. Starts on a 2 MiB boundary where the system
// may back it with large pages: with 4 KiB pages the kernels wait for address translation.
class ScratchBuffer {
 public:
  // At least `bytes`, 64-byte aligned; what an earlier call returned is lost.
  std::byte* reserve(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace clefkit
