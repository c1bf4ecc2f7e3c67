#include "clefkit/cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/cli/command.h"

namespace clefkit::cli {
namespace {

constexpr int kPollMilliseconds = 100;

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02d} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02d} h", whole / 3600, whole / 60 % 60);
}

std::string amount_text(double amount) {
  static constexpr std::array<const char*, 4> kSuffixes{"", "k", "M", "G"};
  std::size_t suffix = 0;
  while (amount >= 10000 && suffix + 1 < kSuffixes.size()) {
    amount /= 1000;
    ++suffix;
  }
  return fmt::format("{:.{}f}{}", amount, amount < 10 && suffix > 0 ? 1 : 0, kSuffixes[suffix]);
}

}  // namespace

std::string as_reason(const std::string& reason) { return reason.empty() ? "" : ": " + reason; }

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw_error(ErrorCode::kUnavailable, "standard output", "cannot write: {}",
                std::strerror(errno));
  }
}

void write_line(std::string_view text) { write_out(std::string(text) + "\n"); }

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }
bool stdin_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

bool use_colour() {
  const char* const term = std::getenv("TERM");
  const char* const no_colour = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (no_colour == nullptr || *no_colour == '\0') &&
         !(term != nullptr && std::string_view(term) == "dumb");
}

std::string read_stdin(std::uint64_t limit_bytes) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    // A person who types may think better of it: Ctrl-C is looked for while nothing comes.
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, kPollMilliseconds) <= 0) {
      interrupt_token().throw_if_cancelled();
      continue;
    }
    const ::ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw_error(ErrorCode::kUnavailable, "standard input", "cannot read: {}",
                  std::strerror(errno));
    }
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > limit_bytes) {
      throw_error(ErrorCode::kInvalidArgument, "standard input",
                  "more than {} bytes, expected at most that", limit_bytes);
    }
  }
}

std::string read_input(const std::string& path, std::uint64_t limit_bytes) {
  if (path == "-") return read_stdin(limit_bytes);
  try {
    return read_file(path, limit_bytes);
  } catch (const Error& error) {
    // It is the user's file, not the model's.
    throw Error(ErrorCode::kInvalidArgument, error.where(), error.message());
  }
}

Progress::Progress(std::string what, std::string unit, bool quiet)
    : what_(std::move(what)), unit_(std::move(unit)), enabled_(!quiet && stderr_is_terminal()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(double done, double total, std::string_view note) {
  using namespace std::chrono;
  const auto now = steady_clock::now();
  if (!enabled_ || (now - last_ < milliseconds(100) && done < total)) return;
  last_ = now;
  shown_ = true;
  const double elapsed = duration<double>(now - start_).count();
  const double rate = elapsed > 0 ? done / elapsed : 0;
  std::string text =
      fmt::format("{} {}/{} {}", what_, amount_text(done), amount_text(total), unit_);
  if (elapsed > 0.5 && rate > 0) {
    text += fmt::format(", {} {}/s, {} left", amount_text(rate), unit_,
                        duration_text((total - done) / rate));
  }
  if (!note.empty()) text += fmt::format(" ({})", note);
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
}

}  // namespace clefkit::cli
