#include "clefkit/media/media_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/media/base64.h"

namespace clefkit {
namespace {

std::string_view forms(const MediaSourceOptions& options) {
  return options.allow_files ? "a data URL, base64, {\"content_type\", \"base64\"} or file:PATH"
                             : "a data URL, base64 or {\"content_type\", \"base64\"}";
}

template <typename... Args>
[[noreturn]] void refuse(const std::string& where, fmt::format_string<Args...> format,
                         Args&&... args) {
  throw_error(ErrorCode::kInvalidArgument, where, format, std::forward<Args>(args)...);
}

void check_size(std::uint64_t bytes, const MediaSourceOptions& options, const std::string& where) {
  if (bytes > options.max_bytes) {
    refuse(where, "{} bytes, expected at most {}", bytes, options.max_bytes);
  }
}

std::vector<std::uint8_t> from_base64(std::string_view text, const std::string& where,
                                      const MediaSourceOptions& options) {
  // White space in it counts for nothing, but is not worth looking at twice.
  check_size(text.size() / 4 * 3, options, where);
  auto bytes = decode_base64(text);
  if (!bytes) {
    refuse(where, "text that is not base64, expected {}", forms(options));
  }
  return std::move(*bytes);
}

std::vector<std::uint8_t> from_data_url(std::string_view url, const std::string& where,
                                        const MediaSourceOptions& options) {
  const std::size_t comma = url.find(',');
  if (comma == url.npos) refuse(where, "a data URL without a comma, expected data:TYPE;base64,…");
  if (!url.substr(0, comma).ends_with(";base64")) {
    refuse(where, "a data URL that is not base64, expected data:TYPE;base64,…");
  }
  return from_base64(url.substr(comma + 1), where, options);
}

class File {
 public:
  // Does not wait for whoever writes to a pipe of that name.
  explicit File(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (file_ >= 0) ::close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  operator int() const { return file_; }

 private:
  int file_;
};

std::vector<std::uint8_t> from_file(const std::filesystem::path& path, const std::string& where,
                                    const MediaSourceOptions& options) {
  const std::string name = path.string();
  const auto failed = [&] { refuse(where, "{}: {}, expected a file", name, std::strerror(errno)); };
  const File file(name);
  if (file < 0) failed();
  struct stat status {};
  if (::fstat(file, &status) != 0) failed();
  if (!S_ISREG(status.st_mode)) refuse(where, "{} is not a regular file, expected one", name);
  check_size(static_cast<std::uint64_t>(status.st_size), options, where);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed();
    if (got == 0) break;  // It has become shorter.
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::vector<std::uint8_t> from_text(std::string_view text, const std::string& where,
                                    const MediaSourceOptions& options) {
  if (text.starts_with("data:")) return from_data_url(text, where, options);
  if (text.starts_with("http://") || text.starts_with("https://")) {
    refuse(where, "a web address, expected {}: nothing is fetched from the network",
           forms(options));
  }
  if (!text.starts_with("file:")) return from_base64(text, where, options);
  if (!options.allow_files) {
    refuse(where, "file:…, expected {}: files are not read for this request", forms(options));
  }
  text.remove_prefix(5);
  if (text.starts_with("///")) text.remove_prefix(2);
  return from_file(options.base_directory / std::string(text), where, options);
}

}  // namespace

std::vector<std::uint8_t> read_media_source(const Json& item, const std::string& where,
                                            const MediaSourceOptions& options) {
  if (item.is_string()) return from_text(item.string(), where, options);
  if (!item.is_object()) refuse(where, "{}, expected {}", item.kind_name(), forms(options));
  const Json* const encoded = item.find("base64");
  if (encoded == nullptr || !encoded->is_string()) {
    refuse(where + ".base64", "{}, expected base64 text",
           encoded == nullptr ? "missing" : encoded->kind_name());
  }
  const std::string_view text = encoded->string();
  // Some clients put the whole data URL there.
  return text.starts_with("data:") ? from_data_url(text, where + ".base64", options)
                                   : from_base64(text, where + ".base64", options);
}

}  // namespace clefkit
