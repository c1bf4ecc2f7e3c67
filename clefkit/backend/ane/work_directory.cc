#include "clefkit/backend/ane/work_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <system_error>

#include "clefkit/base/error.h"

namespace clefkit::ane {
namespace {

namespace fs = std::filesystem;

constexpr char kOwnerFile[] = "clefkit-owner";
constexpr char kNewOwnerFile[] = "clefkit-owner.new";

// The file, locked; -1 when another process has it locked, or when it cannot be opened.
int open_locked(const fs::path& path, int flags) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
  if (file < 0) return -1;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  ::close(file);
  return -1;
}

}  // namespace

WorkDirectory::~WorkDirectory() {
  if (owner_file_ < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(owner_file_);
}

void WorkDirectory::make() {
  if (owner_file_ >= 0) return;
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  const bool is_new = !error && fs::create_directory(path_, error);
  if (error) {
    throw_error(ErrorCode::kUnavailable, path_.string(), "{}, expected a directory",
                error.message());
  }
  if (!is_new) {
    owner_file_ = open_locked(path_ / kOwnerFile, 0);
    return;
  }
  // Locked before it has the name by which others would find it abandoned.
  owner_file_ = open_locked(path_ / kNewOwnerFile, O_CREAT);
  fs::rename(path_ / kNewOwnerFile, path_ / kOwnerFile, error);
}

void remove_abandoned_work(const fs::path& parent) {
  std::error_code error;
  fs::directory_iterator entries(parent, error);
  // Whatever cannot be read or removed stays: it is nobody's work that is needed.
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const int file = open_locked(entries->path() / kOwnerFile, 0);
    if (file < 0) continue;
    std::error_code ignored;
    fs::remove_all(entries->path(), ignored);
    ::close(file);
  }
}

}  // namespace clefkit::ane
