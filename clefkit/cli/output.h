#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace clefkit::cli {

// Writes to standard output and flushes. Throws Error(kUnavailable) when that fails (a closed pipe,
// a full disk): an answer must not be lost silently.
void write_out(std::string_view text);
void write_line(std::string_view text);

// ": reason", or nothing.
std::string as_reason(const std::string& reason);

bool stdout_is_terminal();
bool stderr_is_terminal();
bool stdin_is_terminal();
// Colours only on a terminal, and not when NO_COLOR is set or TERM is `dumb`.
bool use_colour();

// All of standard input; Error(kInvalidArgument) beyond `limit_bytes`.
std::string read_stdin(std::uint64_t limit_bytes);
// A file the user named, or standard input for "-". Absent or too large: Error(kInvalidArgument).
std::string read_input(const std::string& path, std::uint64_t limit_bytes);

// One line on standard error that rewrites itself: what, done of total, rate, time left. Silent
// unless standard error is a terminal and `quiet` is false.
class Progress {
 public:
  Progress(std::string what, std::string unit, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(double done, double total, std::string_view note = {});

 private:
  std::string what_;
  std::string unit_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace clefkit::cli
