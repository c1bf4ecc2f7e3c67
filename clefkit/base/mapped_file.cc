#include "clefkit/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Does not wait for whoever writes to a pipe of that name.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const bool is_absent = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    throw_error(is_absent ? ErrorCode::kNotFound : ErrorCode::kUnavailable, path.string(),
                "cannot open the file: {}", std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    throw Error(ErrorCode::kNotFound, path.string(), "not a regular file, expected one");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) {
      const int reason = errno;
      ::close(file);
      throw_error(ErrorCode::kUnavailable, path.string(), "cannot map {} bytes: {}", size_,
                  std::strerror(reason));
    }
    data_ = static_cast<const std::uint8_t*>(address);
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void release_pages(Bytes mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  // Whole pages only: a page at the edge may hold a neighbour that is being read.
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + mapped.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace clefkit
