#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "clefkit/base/stage_times.h"

namespace clefkit {

// Set by whoever wants a computation to stop; read between pieces of work.
class CancelToken {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Throws Error(kCancelled) when cancelled.
  void throw_if_cancelled() const;

 private:
  std::atomic<bool> cancelled_ = false;
};

// A fixed number of worker threads. How work is cut never depends on that number, so results are
// the same bits for every number of threads.
class Executor {
 public:
  // 0 takes the number of processors this process may use.
  explicit Executor(std::size_t threads = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  std::size_t thread_count() const { return thread_count_; }

  // Calls body(index, worker) once for each index in [0, count), in any order; worker is in
  // [0, thread_count()) and no two calls with one worker overlap, so it may name scratch memory.
  // The first exception that a call throws is thrown here after the others ended. Not to be
  // nested; one caller at a time.
  void parallel_for(std::size_t count,
                    const std::function<void(std::size_t index, std::size_t worker)>& body);

 private:
  struct Arena;
  std::size_t thread_count_;
  std::unique_ptr<Arena> arena_;
};

// What a computing function is given: whose threads, whether to go on, and where its time is
// counted. Copy freely; what it points to must outlive the call.
struct ComputeContext {
  Executor& executor;
  const CancelToken* cancel = nullptr;
  StageTimes* times = nullptr;

  // Executor::parallel_for that throws Error(kCancelled) soon after the token is set: it is read
  // before each call of `body`, so keep one call under about 50 ms.
  void parallel_for(std::size_t count,
                    const std::function<void(std::size_t index, std::size_t worker)>& body) const;
};

}  // namespace clefkit
