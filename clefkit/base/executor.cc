#include "clefkit/base/executor.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "clefkit/base/error.h"

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#define CLEFKIT_UNSEEN_BY_TSAN __attribute__((no_sanitize_thread))
#else
#define CLEFKIT_UNSEEN_BY_TSAN
#endif

namespace clefkit {
namespace {

// oneTBB's library is not built for ThreadSanitizer, which then cannot see that handing out a loop
// and joining it order memory. These say so; without the sanitizer they are nothing.
void order_after([[maybe_unused]] char& point) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(&point);
#endif
}
void order_before([[maybe_unused]] char& point) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(&point);
#endif
}

// Also when a body throws.
struct OrderAfterAtEnd {
  char& point;
  ~OrderAfterAtEnd() { order_after(point); }
};
struct OrderBeforeAtEnd {
  char& point;
  ~OrderBeforeAtEnd() { order_before(point); }
};

// One parallel_for, on its caller's stack.
struct Loop {
  const std::function<void(std::size_t, std::size_t)>& body;
  char began = 0;
  char ended = 0;

  void run(std::size_t first, std::size_t end) {
    order_after(began);
    const OrderBeforeAtEnd leave{ended};
    const auto worker = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    for (std::size_t i = first; i != end; ++i) body(i, worker);
  }
};

// What oneTBB copies from task to task, on whichever thread: only the pointer in it is read before
// run() says what came before.
struct LoopTask {
  Loop* loop;
  CLEFKIT_UNSEEN_BY_TSAN void operator()(const tbb::blocked_range<std::size_t>& range) const {
    loop->run(range.begin(), range.end());
  }
};

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
  Loop loop{body};
  order_before(loop.began);
  const OrderAfterAtEnd join{loop.ended};
  arena_->arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count, 1), LoopTask{&loop},
                      tbb::simple_partitioner());
  });
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
