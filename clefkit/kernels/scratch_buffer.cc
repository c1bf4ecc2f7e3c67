#include "clefkit/kernels/scratch_buffer.h"

#include <cstring>
#include <new>

#include "clefkit/base/bytes.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace clefkit {

std::byte* ScratchBuffer::reserve(std::size_t bytes) {
  if (bytes <= size_) return memory_.get();
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  const std::size_t size = align_up(bytes, kLargePage);
  memory_.reset();
  size_ = 0;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kLargePage, size)));
  if (memory_ == nullptr) throw std::bad_alloc();
  size_ = size;
#if defined(__linux__)
  madvise(memory_.get(), size, MADV_HUGEPAGE);  // Advice only: failing costs speed.
#endif
  std::memset(memory_.get(), 0, size);
  return memory_.get();
}

}  // namespace clefkit
