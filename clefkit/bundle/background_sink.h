#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "clefkit/base/bytes.h"

namespace clefkit {

// Hands buffers to one background thread, which gives them to `sink` in order: hashing and writing
// overlap with whatever fills the next buffer. At most `limit_bytes` wait at a time (a single
// larger buffer still passes).
class BackgroundSink {
 public:
  BackgroundSink(std::function<void(Bytes)> sink, std::size_t limit_bytes);
  // Drops what still waits; call finish() to have it written.
  ~BackgroundSink();
  BackgroundSink(const BackgroundSink&) = delete;
  BackgroundSink& operator=(const BackgroundSink&) = delete;

  // Blocks while too much waits. Both throw what `sink` threw.
  void push(std::vector<std::uint8_t> buffer);
  void finish();

 private:
  void run();

  std::function<void(Bytes)> sink_;
  std::size_t limit_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::uint8_t>> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool closing_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace clefkit
