#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clefkit/base/stopwatch.h"
#include "clefkit/engine/engine.h"

namespace clefkit {

// One caller's work: a state and its media, and one list of questions about them or several, which
// are answered one after the other as if each were a request of its own.
struct Job {
  using Clock = std::chrono::steady_clock;

  struct Work {
    Request request{};                                    // Its questions are not looked at.
    std::vector<std::vector<Question>> question_lists{};  // At least one.
  };
  struct Result {
    std::vector<Response> responses{};  // One a list; empty when `error` is set.
    std::exception_ptr error{};
    double queue_seconds = 0;  // From submission to the first step.
  };

  // Reads the request, on the scheduler's preparing thread, and may say how they are to be
  // answered. What it throws is the job's error.
  std::function<Work(AskOptions& options)> read{};
  AskOptions options{};  // Its `cancel` and `times` are the scheduler's to set.
  std::optional<Clock::time_point> deadline{};
  // Told once what became of the job, on any of the scheduler's threads or the one that cancels.
  // Error(kCancelled) also when the deadline passed. Must not block or call the scheduler.
  std::function<void(Result)> done{};
};

struct SchedulerOptions {
  std::size_t max_jobs = 32;  // That wait or run; more are not taken.
  // Jobs whose state is in memory at one time, while their records have no more tokens than that
  // together; one is always allowed.
  std::size_t max_runs = 4;
  std::size_t max_run_tokens = 24'576;
  // Of decoded pictures that wait; beyond it no more jobs are prepared.
  std::size_t max_prepared_bytes = std::size_t{512} << 20;
};

struct SchedulerCounts {
  std::size_t jobs = 0;  // That wait or run.
  std::uint64_t finished = 0, failed = 0, cancelled = 0;
  std::uint64_t input_tokens = 0, reused_tokens = 0;
  std::size_t cache_bytes = 0, cache_entries = 0;
  std::vector<std::pair<std::string, double>> stage_seconds;
};

// Shares one engine among jobs. One thread reads and encodes requests ahead; one computes, step by
// step: in turns the job that came first, and the one with the least left to compute. A short job
// thus waits for two steps of others, not for the end of a long one, and the first job gets at
// least every second step whatever comes after it.
class Scheduler {
 public:
  using Ticket = std::uint64_t;

  // The engine must outlive the scheduler and is the scheduler's alone.
  Scheduler(Engine& engine, const SchedulerOptions& options);
  // Cancels what is left.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Nothing, and the job is dropped, when max_jobs are there or drain() was called.
  std::optional<Ticket> submit(Job job);
  // A job that waits ends at once, one that runs within about 50 ms. Unknown tickets are ignored.
  void cancel(Ticket ticket);
  void cancel_all();
  // Takes no more jobs and returns when all are done.
  void drain();

  SchedulerCounts counts() const;
  // How long a job that came now would wait, from the pace of the last ones.
  double expected_wait_seconds() const;

 private:
  enum class Stage { kSubmitted, kPreparing, kReady, kStepping };
  struct Entry;
  using Entries = std::list<std::unique_ptr<Entry>>;

  void prepare_loop();
  void compute_loop();
  void deadline_loop();
  Entry* next_to_prepare();
  Entry* next_to_step();
  bool may_start(const Entry& entry) const;
  void prepare_next(Entry& entry);
  bool step(Entry& entry);
  void fail(Entry& entry, std::unique_lock<std::mutex>& lock, std::exception_ptr error);
  void end(Entry& entry, std::unique_lock<std::mutex>& lock);
  void cancel_entry(Entry& entry, std::unique_lock<std::mutex>& lock);

  Engine& engine_;
  const SchedulerOptions options_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  Entries entries_;  // Oldest first.
  Ticket next_ticket_ = 1;
  bool is_draining_ = false, is_stopping_ = false;
  bool oldest_turn_ = true;
  SchedulerCounts counts_;
  double seconds_per_job_ = 0;

  StageTimes times_;  // The computing thread's own.
  std::thread preparing_, computing_, watching_;
};

}  // namespace clefkit
