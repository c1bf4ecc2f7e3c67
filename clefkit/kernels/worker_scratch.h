#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {

// Working memory of one call, a buffer of aligned floats for each worker, allocated when the
// worker first asks for it. Not cleared between tasks.
class WorkerScratch {
 public:
  WorkerScratch(std::size_t workers, std::size_t floats) : buffers_(workers), floats_(floats) {}

  // Called with one `worker` by one thread at a time, as Executor::parallel_for does.
  float* of(std::size_t worker) {
    auto& buffer = buffers_[worker];
    if (!buffer) {
      buffer = hwy::AllocateAligned<float>(floats_);
      if (!buffer) {
        throw_error(ErrorCode::kUnavailable, "", "no memory for {} floats of scratch", floats_);
      }
    }
    return buffer.get();
  }

 private:
  std::vector<hwy::AlignedFreeUniquePtr<float[]>> buffers_;
  std::size_t floats_;
};

// Hands out pieces of one scratch buffer, each at a multiple of 32 floats.
class ScratchCursor {
 public:
  static constexpr std::size_t kStep = 32;
  static constexpr std::size_t round_up(std::size_t floats) {
    return (floats + kStep - 1) / kStep * kStep;
  }

  explicit ScratchCursor(float* first) : next_(first) {}
  float* take(std::size_t floats) {
    float* const piece = next_;
    next_ += round_up(floats);
    return piece;
  }

 private:
  float* next_;
};

}  // namespace clefkit
