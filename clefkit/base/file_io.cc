#include "clefkit/base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/mapped_file.h"

namespace clefkit {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view doing) {
  throw_error(ErrorCode::kUnavailable, path.string(), "cannot {}: {}", doing, std::strerror(errno));
}

void flush_directory(const std::filesystem::path& directory) {
  const int handle = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;  // Not every file system lets a directory be opened; the rename stands.
  ::fsync(handle);
  ::close(handle);
}

// "a/" and "a" are the same directory.
std::filesystem::path without_slash(const std::filesystem::path& path) {
  const std::filesystem::path normal = path.lexically_normal();
  std::filesystem::path named = normal.has_filename() ? normal : normal.parent_path();
  if (!named.has_filename() || named.filename() == "." || named.filename() == "..") {
    throw_error(ErrorCode::kInvalidArgument, "output",
                "\"{}\", expected the name of a new directory", path.string());
  }
  return named;
}

// Where a link leads. What is no file (a device, a pipe, a directory) cannot be put in its place.
std::filesystem::path target_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error && status.type() == std::filesystem::file_type::none) {
    throw_error(ErrorCode::kInvalidArgument, path.string(), "{}, expected a file or none",
                error.message());
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::kInvalidArgument, path.string(),
                "is not a regular file, expected one or none");
  }
  // Also where it leads to no file yet. status() has followed it, so it ends.
  std::filesystem::path target = path;
  while (std::filesystem::is_symlink(std::filesystem::symlink_status(target, error))) {
    target = target.parent_path() / std::filesystem::read_symlink(target);
  }
  return target;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  const MappedFile file(path);
  if (file.bytes().size() > limit_bytes) {
    throw_error(ErrorCode::kCorruptData, path.string(), "{} bytes, expected at most {}",
                file.bytes().size(), limit_bytes);
  }
  return std::string(as_text(file.bytes()));
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(target_of(path)), temporary_(path_.string() + ".tmp") {
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail(temporary_, "create the file");
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::write(Bytes bytes) {
  while (!bytes.empty()) {
    // macOS refuses writes of 2 GiB and more.
    const std::size_t step = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
    const ::ssize_t written = ::write(file_, bytes.data(), step);
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(temporary_, "write");
    }
    size_bytes_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(file_) != 0) fail(temporary_, "flush");
  // A close that fails (quota, network) is a lost write; the destructor must not try again.
  const int file = std::exchange(file_, -1);
  if (::close(file) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
    errno = reason;
    fail(path_, "finish the file");
  }
  flush_directory(path_.parent_path());
}

AtomicDirectory::AtomicDirectory(const std::filesystem::path& path)
    : path_(without_slash(path)), partial_(path_.string() + ".partial") {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path_, error);
  if (fs::exists(status) && !(fs::is_directory(status) && fs::is_empty(path_, error))) {
    throw Error(ErrorCode::kInvalidArgument, path_.string(),
                "already exists, expected the name of a new directory or an empty one");
  }
  if (const fs::path parent = path_.parent_path(); !parent.empty()) {
    fs::create_directories(parent, error);
    if (error) {
      throw_error(ErrorCode::kUnavailable, parent.string(), "cannot create the directory: {}",
                  error.message());
    }
  }
  if (::mkdir(partial_.c_str(), 0755) == 0) return;
  if (errno != EEXIST) fail(partial_, "create the directory");
  throw Error(ErrorCode::kInvalidArgument, partial_.string(),
              "already exists, expected nothing there: remove it if what wrote it was killed");
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  if (!is_committed_) std::filesystem::remove_all(partial_, ignored);
}

void AtomicDirectory::commit() {
  flush_directory(partial_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(path_, "finish the directory");
  is_committed_ = true;
  flush_directory(path_.parent_path());
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace clefkit
