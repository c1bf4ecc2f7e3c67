#include "clefkit/bundle/background_sink.h"

#include <utility>

namespace clefkit {

BackgroundSink::BackgroundSink(std::function<void(Bytes)> sink, std::size_t limit_bytes)
    : sink_(std::move(sink)), limit_bytes_(limit_bytes), thread_([this] { run(); }) {}

BackgroundSink::~BackgroundSink() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundSink::push(std::vector<std::uint8_t> buffer) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return failure_ != nullptr || waiting_bytes_ == 0 ||
           waiting_bytes_ + buffer.size() <= limit_bytes_;
  });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  waiting_bytes_ += buffer.size();
  waiting_.push_back(std::move(buffer));
  changed_.notify_all();
}

void BackgroundSink::finish() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void BackgroundSink::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::vector<std::uint8_t> buffer = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      sink_(buffer);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    waiting_bytes_ -= buffer.size();
    if (failure != nullptr) {
      failure_ = failure;
      waiting_.clear();
      waiting_bytes_ = 0;
      changed_.notify_all();
      return;
    }
    changed_.notify_all();
  }
}

}  // namespace clefkit
