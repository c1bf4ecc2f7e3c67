#include "clefkit/engine/scheduler.h"

#include <gtest/gtest.h>

#include <future>

#include "clefkit/base/error_of.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {
namespace {

using namespace std::chrono_literals;

Model micro() { return open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro"); }

Request ticket(std::size_t state_tokens, const std::string& id = "refund") {
  std::string state;
  for (std::size_t i = 0; i < state_tokens; ++i) state += static_cast<char>('0' + i * i % 7);
  return parse_request(fmt::format(R"({{"state": "{}", "questions": {{"{}": {{"type": "noul",
                      "instructions": "Money back?"}}}}}})",
                                   state, id),
                       "test");
}

Job::Work work_of(const Request& request) { return {request, {request.questions}}; }

// A job whose result can be waited for.
struct Asked {
  explicit Asked(const Request& request) : Asked(work_of(request)) {}
  explicit Asked(const Job::Work& work) {
    job.read = [work](AskOptions&) { return work; };
    job.done = [this](Job::Result result) { promise.set_value(std::move(result)); };
  }
  Error error() {
    return error_of([&] {
      const Job::Result result = future.get();
      if (result.error) std::rethrow_exception(result.error);
    });
  }

  Job job;
  std::promise<Job::Result> promise;
  std::future<Job::Result> future = promise.get_future();
};

TEST(Scheduler, AnswersAsTheEngineDoes) {
  Engine alone(micro(), {.threads = 1, .cache_bytes = 0});
  Engine engine(micro(), {.threads = 2, .chunk_tokens = 64});
  Engine same_chunks(micro(), {.threads = 1, .chunk_tokens = 64, .cache_bytes = 0});
  Scheduler scheduler(engine, {});
  std::vector<std::unique_ptr<Asked>> all;
  for (std::size_t i = 0; i < 12; ++i) {
    all.push_back(std::make_unique<Asked>(ticket(100 * (i % 5) + i, fmt::format("q{}", i))));
    ASSERT_TRUE(scheduler.submit(std::move(all.back()->job)));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Job::Result result = all[i]->future.get();
    ASSERT_EQ(result.responses.size(), 1u);
    const Request request = ticket(100 * (i % 5) + i, fmt::format("q{}", i));
    EXPECT_EQ(result.responses[0].probabilities, same_chunks.ask(request).probabilities);
    EXPECT_EQ(result.responses[0].input_tokens, alone.ask(request).input_tokens);
  }
  scheduler.drain();
  EXPECT_EQ(scheduler.counts().finished, 12u);
  EXPECT_EQ(scheduler.counts().jobs, 0u);
}

TEST(Scheduler, AShortJobOvertakesALongOne) {
  Engine engine(micro(), {.threads = 1, .chunk_tokens = 16, .cache_bytes = 0});
  Scheduler scheduler(engine, {});
  Asked long_job(ticket(3000)), short_job(ticket(10));
  std::size_t tokens_when_short_was_done = 0;
  std::atomic<std::size_t> long_tokens = 0;
  short_job.job.done = [&](Job::Result result) {
    tokens_when_short_was_done = long_tokens;
    short_job.promise.set_value(std::move(result));
  };
  long_job.job.options.progress = [&](std::size_t done, std::size_t) {
    long_tokens = done;
    if (done == 16) scheduler.submit(std::move(short_job.job));
  };
  ASSERT_TRUE(scheduler.submit(std::move(long_job.job)));
  EXPECT_EQ(short_job.future.get().responses.size(), 1u);
  EXPECT_EQ(long_job.future.get().responses.size(), 1u);
  EXPECT_GT(tokens_when_short_was_done, 0u);
  EXPECT_LT(tokens_when_short_was_done, 3000u);
}

TEST(Scheduler, ShortJobsDoNotStarveALongOne) {
  Engine engine(micro(), {.threads = 1, .chunk_tokens = 16, .cache_bytes = 0});
  Scheduler scheduler(engine, {.max_jobs = 4});
  std::atomic<bool> is_long_done = false;
  std::atomic<int> short_ones = 0;
  Asked long_job(ticket(400));
  long_job.job.done = [&](Job::Result result) {
    is_long_done = true;
    long_job.promise.set_value(std::move(result));
  };
  ASSERT_TRUE(scheduler.submit(std::move(long_job.job)));
  // As many short ones as the queue takes, without end.
  while (!is_long_done) {
    Job job;
    job.read = [](AskOptions&) { return work_of(ticket(1)); };
    job.done = [&](const Job::Result&) { ++short_ones; };
    scheduler.submit(std::move(job));
  }
  EXPECT_EQ(long_job.future.get().responses.size(), 1u);
  scheduler.drain();
  EXPECT_GT(short_ones, 0);
}

TEST(Scheduler, RefusesWhatIsTooMuch) {
  Engine engine(micro(), {.threads = 1});
  Scheduler scheduler(engine, {.max_jobs = 2});
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future();
  Asked first(ticket(1)), second(ticket(1)), third(ticket(1));
  first.job.read = [gate](AskOptions&) {
    gate.wait();
    return work_of(ticket(1));
  };
  EXPECT_TRUE(scheduler.submit(std::move(first.job)));
  EXPECT_TRUE(scheduler.submit(std::move(second.job)));
  EXPECT_FALSE(scheduler.submit(std::move(third.job)));
  EXPECT_EQ(scheduler.counts().jobs, 2u);
  go.set_value();
  EXPECT_EQ(first.future.get().responses.size(), 1u);
  EXPECT_EQ(second.future.get().responses.size(), 1u);
  scheduler.drain();
  Asked late(ticket(1));
  EXPECT_FALSE(scheduler.submit(std::move(late.job)));
}

TEST(Scheduler, CancelsWhatWaitsAndWhatRuns) {
  Engine engine(micro(), {.threads = 1, .chunk_tokens = 16, .cache_bytes = 0});
  Scheduler scheduler(engine, {.max_runs = 1});
  Asked running(ticket(3000)), waiting(ticket(3000));
  std::promise<void> begun, cancelled;
  std::atomic<bool> is_first = true;
  running.job.options.progress = [&](std::size_t, std::size_t) {
    if (!is_first.exchange(false)) return;
    begun.set_value();
    cancelled.get_future().wait();
  };
  const auto first = scheduler.submit(std::move(running.job));
  const auto second = scheduler.submit(std::move(waiting.job));
  ASSERT_TRUE(first && second);
  begun.get_future().wait();
  scheduler.cancel(*second);
  EXPECT_EQ(waiting.error().code(), ErrorCode::kCancelled);  // Though the other holds the thread.
  scheduler.cancel(*first);
  scheduler.cancel(*second);
  cancelled.set_value();
  EXPECT_EQ(running.error().code(), ErrorCode::kCancelled);
  scheduler.drain();
  EXPECT_EQ(scheduler.counts().cancelled, 2u);
}

TEST(Scheduler, EndsAJobAtItsDeadline) {
  Engine engine(micro(), {.threads = 1});
  Scheduler scheduler(engine, {});
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future();
  Asked blocking(ticket(1)), late(ticket(1));
  blocking.job.read = [gate](AskOptions&) {
    gate.wait();
    return work_of(ticket(1));
  };
  late.job.deadline = Job::Clock::now() + 20ms;
  scheduler.submit(std::move(blocking.job));
  scheduler.submit(std::move(late.job));
  EXPECT_EQ(late.error().code(), ErrorCode::kCancelled);
  go.set_value();
  EXPECT_EQ(blocking.error().code(), ErrorCode::kInternal);  // "no error"
}

TEST(Scheduler, HandsOnWhatReadingAndEncodingThrow) {
  Engine engine(micro(), {.threads = 1});
  Scheduler scheduler(engine, {});
  Asked unreadable(ticket(1)), too_long(ticket(500)), fine(ticket(1));
  unreadable.job.read = [](AskOptions&) -> Job::Work {
    throw Error(ErrorCode::kInvalidArgument, "here", "bad");
  };
  too_long.job.options.limits.max_tokens = 300;
  scheduler.submit(std::move(unreadable.job));
  scheduler.submit(std::move(too_long.job));
  scheduler.submit(std::move(fine.job));
  EXPECT_EQ(unreadable.error().where(), "here");
  EXPECT_EQ(too_long.error().code(), ErrorCode::kTooLarge);
  EXPECT_EQ(fine.error().message(), "no error");
}

TEST(Scheduler, AnswersSeveralRequestsOverOnePrefix) {
  Engine engine(micro(), {.threads = 1});
  Engine alone(micro(), {.threads = 1, .cache_bytes = 0});
  Scheduler scheduler(engine, {});
  Asked asked({ticket(200), {ticket(0, "a").questions, ticket(0, "b").questions}});
  scheduler.submit(std::move(asked.job));
  const Job::Result result = asked.future.get();
  ASSERT_EQ(result.responses.size(), 2u);
  EXPECT_EQ(result.responses[0].reused_tokens, 0u);
  EXPECT_GT(result.responses[1].reused_tokens, 200u);
  EXPECT_EQ(result.responses[1].probabilities, alone.ask(ticket(200, "b")).probabilities);
}

TEST(Scheduler, ComputesAPrefixOnceForJobsThatShareIt) {
  Engine engine(micro(), {.threads = 1, .chunk_tokens = 16});
  Scheduler scheduler(engine, {});
  std::vector<std::unique_ptr<Asked>> all;
  for (const char* id : {"a long name for the first", "b", "c"}) {
    all.push_back(std::make_unique<Asked>(ticket(600, id)));
    scheduler.submit(std::move(all.back()->job));
  }
  EXPECT_EQ(all[0]->future.get().responses.at(0).reused_tokens, 0u);
  EXPECT_GT(all[1]->future.get().responses.at(0).reused_tokens, 600u);
  EXPECT_GT(all[2]->future.get().responses.at(0).reused_tokens, 600u);
}

TEST(Scheduler, EndsEveryJobWhenItGoes) {
  Engine engine(micro(), {.threads = 1, .chunk_tokens = 16});
  std::vector<std::unique_ptr<Asked>> all;
  {
    Scheduler scheduler(engine, {});
    for (int i = 0; i < 8; ++i) {
      all.push_back(std::make_unique<Asked>(ticket(2000)));
      scheduler.submit(std::move(all.back()->job));
    }
  }
  for (const auto& asked : all) asked->error();  // Would wait for ever.
}

}  // namespace
}  // namespace clefkit
