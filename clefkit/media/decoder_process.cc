#include "clefkit/media/decoder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/utf8.h"

namespace clefkit {
namespace {

// How soon cancelling is noticed.
constexpr int kPollMilliseconds = 20;

#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
#else
constexpr int kSendFlags = MSG_DONTWAIT;  // SO_NOSIGPIPE is set instead.
#endif

// One socket is the process's input and output; ours is closed in every other child.
std::array<int, 2> make_sockets() {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) {
    throw_error(ErrorCode::kUnavailable, "media decoder", "socketpair: {}, expected success",
                std::strerror(errno));
  }
  for (const int socket : sockets) ::fcntl(socket, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
  const int on = 1;
  ::setsockopt(sockets[0], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  return sockets;
}

// In a process group of its own, so that Ctrl-C reaches us and not it; with signals as at birth and
// an empty environment.
pid_t start(const std::filesystem::path& program, int socket) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = program.string();
  char* arguments[] = {name.data(), nullptr};
  char* environment[] = {nullptr};
  pid_t process = -1;
  const int result =
      ::posix_spawn(&process, name.c_str(), &files, &attributes, arguments, environment);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (result != 0) {
    throw_error(ErrorCode::kUnavailable, "media decoder", "{}: {}, expected a program", name,
                std::strerror(result));
  }
  return process;
}

// Of a stranger: one line of valid UTF-8.
std::string printable(std::string text) {
  text.resize(utf8_valid_prefix(text));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return text.empty() ? "no reason given" : text;
}

// Whatever else a decoder says went wrong, went wrong with these media.
ErrorCode code_of(std::uint64_t code) {
  for (const ErrorCode known : {ErrorCode::kUnsupported, ErrorCode::kUnavailable}) {
    if (code == static_cast<std::uint64_t>(known)) return known;
  }
  return ErrorCode::kInvalidArgument;
}

}  // namespace

DecoderProcess::DecoderProcess(const std::filesystem::path& program, std::string where,
                               std::chrono::seconds time_limit, const CancelToken* cancel)
    : where_(std::move(where)),
      time_limit_(time_limit),
      deadline_(std::chrono::steady_clock::now() + time_limit),
      cancel_(cancel) {
  const auto [ours, theirs] = make_sockets();
  socket_ = ours;
  try {
    process_ = start(program, theirs);
  } catch (...) {
    ::close(theirs);
    ::close(ours);
    throw;
  }
  ::close(theirs);
}

DecoderProcess::~DecoderProcess() { end(); }

void DecoderProcess::end() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

void DecoderProcess::wait_for(short events) {
  for (;;) {
    if (cancel_ != nullptr) cancel_->throw_if_cancelled();
    if (std::chrono::steady_clock::now() > deadline_) {
      throw_error(ErrorCode::kInvalidArgument, where_,
                  "decoding takes longer than {} s, expected less", time_limit_.count());
    }
    pollfd entry{.fd = socket_, .events = events, .revents = 0};
    if (::poll(&entry, 1, kPollMilliseconds) > 0) return;
  }
}

void DecoderProcess::send(Bytes bytes) {
  while (!bytes.empty()) {
    wait_for(POLLOUT);
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), kSendFlags);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) continue;
    if (sent <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

bool DecoderProcess::receive(std::span<std::uint8_t> to) {
  while (!to.empty()) {
    wait_for(POLLIN);
    const ssize_t got = ::recv(socket_, to.data(), to.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

decoder::MessageHeader DecoderProcess::receive_header() {
  decoder::MessageHeader header;
  if (!receive({reinterpret_cast<std::uint8_t*>(&header), sizeof header})) throw_ended();
  if (header.magic != decoder::kMagic) throw_nonsense("a message of another build");
  if (header.kind != decoder::MessageKind::kError) return header;
  if (header.bytes > decoder::kMaxErrorBytes) throw_nonsense("an endless error");
  std::string text(header.bytes, ' ');
  if (!receive({reinterpret_cast<std::uint8_t*>(text.data()), text.size()})) throw_ended();
  throw Error(code_of(header.code), where_, printable(std::move(text)));
}

Image DecoderProcess::receive_picture(std::uint64_t max_pixels) {
  const decoder::MessageHeader header = receive_header();
  const bool fits = header.kind == decoder::MessageKind::kPicture && header.height > 0 &&
                    header.width > 0 && header.height <= max_pixels / header.width &&
                    header.bytes == header.height * header.width * 3;
  if (!fits) throw_nonsense("something that is no picture");
  Image image{.height = header.height, .width = header.width, .rgb = {}};
  image.rgb.resize(header.bytes);
  if (!receive(image.rgb)) throw_ended();
  return image;
}

std::vector<double> DecoderProcess::receive_times(std::uint64_t max_frames, double max_seconds) {
  const decoder::MessageHeader header = receive_header();
  const std::uint64_t count = header.bytes / sizeof(double);
  const bool fits = header.kind == decoder::MessageKind::kTimes && count > 0 &&
                    count <= max_frames && header.bytes % sizeof(double) == 0;
  if (!fits) throw_nonsense("something that is no list of times");
  std::vector<double> seconds(count);
  if (!receive({reinterpret_cast<std::uint8_t*>(seconds.data()), header.bytes})) throw_ended();
  const bool ascends =
      std::ranges::all_of(seconds, [](double time) { return std::isfinite(time); }) &&
      std::ranges::is_sorted(seconds) && seconds.front() == 0 && seconds.back() <= max_seconds;
  if (!ascends) throw_nonsense("times that do not ascend from 0");
  return seconds;
}

std::string DecoderProcess::receive_error() {
  try {
    receive_header();
  } catch (const Error& error) {
    return error.message();
  }
  throw_nonsense("no error");
}

void DecoderProcess::throw_nonsense(const std::string& what) {
  throw_error(ErrorCode::kInvalidArgument, where_, "the decoder answers with {}, expected media",
              what);
}

void DecoderProcess::throw_ended() {
  // It may have closed its side a moment before it ends.
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(process_, &status, WNOHANG)) == 0) {
    wait_for(0);
    ::usleep(1000);
  }
  process_ = -1;
  // The media are not to blame for a program that does not load, or for a machine without memory.
  if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0)
    throw_error(ErrorCode::kUnavailable, where_,
                "the decoder ended with code {} and no answer, expected one", WEXITSTATUS(status));
  if (ended > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    throw_error(ErrorCode::kUnavailable, where_,
                "the decoder was ended by the system, expected an answer");
  std::string what = "the decoder ended without an answer";
  if (ended > 0 && WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    what = signal == SIGXCPU  ? fmt::format("decoding takes longer than {} s", time_limit_.count())
           : signal == SIGSYS ? "the decoder tried what its sandbox forbids"
                              : fmt::format("the decoder crashed (signal {})", signal);
  }
  throw_error(ErrorCode::kInvalidArgument, where_, "{}, expected media that can be decoded", what);
}

}  // namespace clefkit
