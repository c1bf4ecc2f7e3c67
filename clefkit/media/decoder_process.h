#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/executor.h"
#include "clefkit/media/decoder_protocol.h"
#include "clefkit/media/image.h"

namespace clefkit {

// The parent's end of one clefkit-media-decoder (decoder_protocol.h). It believes nothing that the
// process says: every length is checked against what was asked for before memory is taken. The
// process is ended and reaped with this object, whatever happens.
class DecoderProcess {
 public:
  // `where` is the media's place in the request; all errors name it. Throws Error(kUnavailable)
  // when the program does not start.
  DecoderProcess(const std::filesystem::path& program, std::string where,
                 std::chrono::seconds time_limit, const CancelToken* cancel);
  ~DecoderProcess();
  DecoderProcess(const DecoderProcess&) = delete;
  DecoderProcess& operator=(const DecoderProcess&) = delete;

  // A process that ends early is told by what is read next.
  void send(Bytes bytes);

  // The next message, which must be of that kind. All throw Error with what the process reports,
  // or what became of it; kCancelled.
  Image receive_picture(std::uint64_t max_pixels);
  std::vector<double> receive_times(std::uint64_t max_frames, double max_seconds);
  // Between the two the caller is at work, which is not the decoder's time.
  void pause() { paused_at_ = std::chrono::steady_clock::now(); }
  void resume() { deadline_ += std::chrono::steady_clock::now() - paused_at_; }

  // Only an error can come: its sentence.
  std::string receive_error();

 private:
  decoder::MessageHeader receive_header();
  // False when the process has ended before.
  bool receive(std::span<std::uint8_t> to);
  // Waits until the socket can be read or written. Throws past the time limit and when cancelled.
  void wait_for(short events);
  [[noreturn]] void throw_ended();
  [[noreturn]] void throw_nonsense(const std::string& what);
  void end();

  std::string where_;
  std::chrono::seconds time_limit_;
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::steady_clock::time_point paused_at_{};
  const CancelToken* cancel_;
  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace clefkit
