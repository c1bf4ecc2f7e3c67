#include "clefkit/media/decoder/pipe_io.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace clefkit::decoder {
namespace {

void write_all(const void* from, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void read_all(std::span<std::uint8_t> to) {
  while (!to.empty()) {
    const ssize_t got = read(STDIN_FILENO, to.data(), to.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(1);
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

void send_picture(const Image& image) {
  const MessageHeader header{.kind = MessageKind::kPicture,
                             .height = image.height,
                             .width = image.width,
                             .bytes = image.rgb.size()};
  write_all(&header, sizeof header);
  write_all(image.rgb.data(), image.rgb.size());
}

void send_times(std::span<const double> seconds) {
  const MessageHeader header{.kind = MessageKind::kTimes, .bytes = seconds.size_bytes()};
  write_all(&header, sizeof header);
  write_all(seconds.data(), seconds.size_bytes());
}

void send_error(ErrorCode code, std::string_view sentence) {
  sentence = sentence.substr(0, kMaxErrorBytes);
  const MessageHeader header{.kind = MessageKind::kError,
                             .code = static_cast<std::uint64_t>(code),
                             .bytes = sentence.size()};
  write_all(&header, sizeof header);
  write_all(sentence.data(), sentence.size());
}

}  // namespace clefkit::decoder
