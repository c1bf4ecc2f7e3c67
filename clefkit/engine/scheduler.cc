#include "clefkit/engine/scheduler.h"

#include <algorithm>

#include "clefkit/base/error.h"

namespace clefkit {

struct Scheduler::Entry {
  Entry(Ticket the_ticket, Job the_job) : ticket(the_ticket), job(std::move(the_job)) {
    job.options.cancel = &cancel;
  }

  std::size_t remaining_tokens() const {
    if (run) return run->remaining_tokens();
    return prepared ? prepared->record.input_ids.size() : 0;
  }
  std::size_t pixel_bytes() const {
    std::size_t bytes = 0;
    if (!prepared) return 0;
    for (const PreparedMedia& item : *prepared->media) bytes += item.pixels.size() * sizeof(float);
    return bytes;
  }

  const Ticket ticket;
  Job job;
  CancelToken cancel;
  Stopwatch since_submission;
  Stage stage = Stage::kSubmitted;
  Job::Work work{};
  std::size_t current = 0;  // The question list that is being answered.
  std::optional<PreparedRequest> prepared;
  std::shared_ptr<const std::vector<PreparedMedia>> media;  // While there are more lists to come.
  std::optional<EngineRun> run;
  Job::Result result{};
};

Scheduler::Scheduler(Engine& engine, const SchedulerOptions& options)
    : engine_(engine),
      options_(options),
      preparing_([this] { prepare_loop(); }),
      computing_([this] { compute_loop(); }),
      watching_([this] { deadline_loop(); }) {}

Scheduler::~Scheduler() {
  {
    std::unique_lock lock(mutex_);
    is_draining_ = is_stopping_ = true;
    for (const auto& entry : entries_) entry->cancel.cancel();
  }
  changed_.notify_all();
  preparing_.join();
  computing_.join();
  watching_.join();
  std::unique_lock lock(mutex_);
  while (!entries_.empty()) cancel_entry(*entries_.front(), lock);
}

std::optional<Scheduler::Ticket> Scheduler::submit(Job job) {
  job.options.times = &times_;
  const std::unique_lock lock(mutex_);
  if (is_draining_ || entries_.size() >= options_.max_jobs) return std::nullopt;
  entries_.push_back(std::make_unique<Entry>(next_ticket_, std::move(job)));
  counts_.jobs = entries_.size();
  changed_.notify_all();
  return next_ticket_++;
}

void Scheduler::cancel(Ticket ticket) {
  std::unique_lock lock(mutex_);
  const auto found = std::ranges::find(entries_, ticket, [](const auto& e) { return e->ticket; });
  if (found != entries_.end()) cancel_entry(**found, lock);
}

void Scheduler::cancel_all() {
  std::vector<Ticket> tickets;
  {
    const std::unique_lock lock(mutex_);
    for (const auto& entry : entries_) tickets.push_back(entry->ticket);
  }
  for (const Ticket ticket : tickets) cancel(ticket);
}

void Scheduler::drain() {
  std::unique_lock lock(mutex_);
  is_draining_ = true;
  changed_.wait(lock, [this] { return entries_.empty(); });
}

SchedulerCounts Scheduler::counts() const {
  const std::unique_lock lock(mutex_);
  return counts_;
}

double Scheduler::expected_wait_seconds() const {
  const std::unique_lock lock(mutex_);
  return seconds_per_job_ * static_cast<double>(entries_.size());
}

// Whoever works on the entry sees the token; otherwise it ends here.
void Scheduler::cancel_entry(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.cancel.cancel();
  if (entry.stage == Stage::kPreparing || entry.stage == Stage::kStepping) {
    if (!is_stopping_) return;
  }
  fail(entry, lock,
       std::make_exception_ptr(Error(ErrorCode::kCancelled, "", "stopped before it was done")));
}

void Scheduler::fail(Entry& entry, std::unique_lock<std::mutex>& lock, std::exception_ptr error) {
  entry.result.responses.clear();
  entry.result.error = error;
  end(entry, lock);
}

// Takes the entry out and tells its result, without the lock.
void Scheduler::end(Entry& entry, std::unique_lock<std::mutex>& lock) {
  const auto place =
      std::ranges::find(entries_, &entry, [](const auto& owned) { return owned.get(); });
  const std::unique_ptr<Entry> ended = std::move(*place);
  entries_.erase(place);
  counts_.jobs = entries_.size();
  if (!ended->result.error) {
    ++counts_.finished;
  } else {
    ++(ended->cancel.is_cancelled() ? counts_.cancelled : counts_.failed);
  }
  lock.unlock();
  ended->run.reset();
  ended->job.done(std::move(ended->result));
  lock.lock();
  changed_.notify_all();
}

Scheduler::Entry* Scheduler::next_to_prepare() {
  std::size_t bytes = 0;
  for (const auto& entry : entries_) {
    if (entry->stage == Stage::kReady && !entry->run) bytes += entry->pixel_bytes();
  }
  if (bytes > options_.max_prepared_bytes) return nullptr;
  const auto found = std::ranges::find(entries_, Stage::kSubmitted,
                                       [](const auto& entry) { return entry->stage; });
  return found == entries_.end() ? nullptr : found->get();
}

void Scheduler::prepare_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    Entry* entry = nullptr;
    changed_.wait(lock, [&] { return is_stopping_ || (entry = next_to_prepare()) != nullptr; });
    if (is_stopping_) return;
    entry->stage = Stage::kPreparing;
    lock.unlock();
    std::exception_ptr error;
    try {
      entry->work = entry->job.read(entry->job.options);
      prepare_next(*entry);
      entry->cancel.throw_if_cancelled();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    entry->stage = Stage::kReady;
    if (error) fail(*entry, lock, error);
    changed_.notify_all();
  }
}

// Encodes the request with its current questions, and lets go of what only encoding needs when they
// are the last.
void Scheduler::prepare_next(Entry& entry) {
  Request& request = entry.work.request;
  request.questions = std::move(entry.work.question_lists.at(entry.current));
  const AskOptions& options = entry.job.options;
  entry.prepared = entry.current == 0 ? engine_.prepare(request, options)
                                      : engine_.prepare(request, entry.media, options);
  request.images.clear();
  request.videos.clear();
  if (entry.current + 1 < entry.work.question_lists.size()) {
    entry.media = entry.prepared->media;
  } else {
    entry.media.reset();
    request.state = Json();
  }
}

bool Scheduler::may_start(const Entry& entry) const {
  std::size_t runs = 0;
  std::size_t tokens = entry.prepared ? entry.prepared->record.input_ids.size() : 0;
  for (const auto& other : entries_) {
    if (!other->run) continue;
    // What it is computing will be there for the asking.
    if (entry.prepared && other->run->is_reading_prefix_of(*entry.prepared)) return false;
    ++runs;
    tokens += other->run->record().input_ids.size();
  }
  return runs == 0 || (runs < options_.max_runs && tokens <= options_.max_run_tokens);
}

Scheduler::Entry* Scheduler::next_to_step() {
  Entry* oldest = nullptr;
  Entry* shortest = nullptr;
  for (const auto& entry : entries_) {
    if (entry->stage != Stage::kReady || (!entry->run && !may_start(*entry))) continue;
    if (oldest == nullptr) oldest = entry.get();
    if (shortest == nullptr || entry->remaining_tokens() < shortest->remaining_tokens()) {
      shortest = entry.get();
    }
  }
  return oldest_turn_ ? oldest : shortest;
}

void Scheduler::compute_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    Entry* entry = nullptr;
    changed_.wait(lock, [&] { return is_stopping_ || (entry = next_to_step()) != nullptr; });
    if (is_stopping_) return;
    oldest_turn_ = !oldest_turn_;
    entry->stage = Stage::kStepping;
    const bool is_first = !entry->run && entry->current == 0;
    if (is_first) entry->result.queue_seconds = entry->since_submission.seconds();
    lock.unlock();
    const Stopwatch stopwatch;
    std::exception_ptr error;
    bool is_done = false;
    try {
      is_done = step(*entry);
      if (!is_done) entry->cancel.throw_if_cancelled();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    entry->stage = Stage::kReady;
    counts_.cache_bytes = engine_.cache().size_bytes();
    counts_.cache_entries = engine_.cache().entries();
    counts_.stage_seconds.assign(times_.seconds().begin(), times_.seconds().end());
    if (error) {
      fail(*entry, lock, error);
    } else if (is_done) {
      for (const Response& response : entry->result.responses) {
        counts_.input_tokens += response.input_tokens;
        counts_.reused_tokens += response.reused_tokens;
      }
      const double busy = entry->since_submission.seconds() - entry->result.queue_seconds;
      seconds_per_job_ = seconds_per_job_ == 0 ? busy : 0.8 * seconds_per_job_ + 0.2 * busy;
      end(*entry, lock);
    }
  }
}

// One step towards the entry's current questions. True: that was the last of all.
bool Scheduler::step(Entry& entry) {
  if (!entry.run) {
    if (!entry.prepared) prepare_next(entry);
    entry.run.emplace(engine_, std::move(*entry.prepared), entry.job.options);
    entry.prepared.reset();
  }
  entry.run->step();
  if (!entry.run->is_done()) return false;
  entry.result.responses.push_back(entry.run->response(entry.work.request));
  entry.run.reset();
  return ++entry.current == entry.work.question_lists.size();
}

void Scheduler::deadline_loop() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const Job::Clock::time_point now = Job::Clock::now();
    Entry* late = nullptr;
    auto wake = now + std::chrono::hours(1);
    for (const auto& entry : entries_) {
      if (!entry->job.deadline || entry->cancel.is_cancelled()) continue;
      if (*entry->job.deadline <= now) late = entry.get();
      wake = std::min(wake, *entry->job.deadline);
    }
    if (late != nullptr) {
      cancel_entry(*late, lock);
    } else {
      changed_.wait_until(lock, wake);
    }
  }
}

}  // namespace clefkit
