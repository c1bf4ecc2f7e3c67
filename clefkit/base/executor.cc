#include "clefkit/base/executor.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "clefkit/base/error.h"

#ifdef __SANITIZE_THREAD__
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
#endif

namespace clefkit {
namespace {

#ifdef __SANITIZE_THREAD__

// ThreadSanitizer cannot see how oneTBB, which is not built for it, orders memory, and would report
// every loop. With it the same loops run on plain threads: what tasks do is checked, how oneTBB
// carries them is not.
void run_on_threads(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t, std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&](std::size_t worker) {
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i, worker);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> helpers;
  for (std::size_t worker = 1; worker < std::min(threads, count); ++worker) {
    helpers.emplace_back(work, worker);
  }
  work(0);
  for (std::thread& helper : helpers) helper.join();
  if (error) std::rethrow_exception(error);
}

#endif

}  // namespace

void CancelToken::throw_if_cancelled() const {
  if (is_cancelled()) throw Error(ErrorCode::kCancelled, "", "stopped at the caller's request");
}

struct Executor::Arena {
  explicit Arena(std::size_t threads) : arena(static_cast<int>(threads)) {}
  tbb::task_arena arena;
};

Executor::Executor(std::size_t threads)
    : thread_count_(threads != 0 ? threads
                                 : static_cast<std::size_t>(tbb::info::default_concurrency())),
      arena_(std::make_unique<Arena>(thread_count_)) {}

Executor::~Executor() = default;

void Executor::parallel_for(std::size_t count,
                            const std::function<void(std::size_t, std::size_t)>& body) {
  if (thread_count_ == 1 || count == 1) {
    for (std::size_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
#ifdef __SANITIZE_THREAD__
  run_on_threads(count, thread_count_, body);
#else
  arena_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, count, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          const auto worker =
              static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
          for (std::size_t i = range.begin(); i != range.end(); ++i) body(i, worker);
        },
        tbb::simple_partitioner());
  });
#endif
}

void ComputeContext::parallel_for(std::size_t count,
                                  const std::function<void(std::size_t, std::size_t)>& body) const {
  if (cancel == nullptr) {
    executor.parallel_for(count, body);
    return;
  }
  executor.parallel_for(count, [&](std::size_t index, std::size_t worker) {
    cancel->throw_if_cancelled();
    body(index, worker);
  });
}

}  // namespace clefkit
