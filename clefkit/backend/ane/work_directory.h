#pragma once

#include <filesystem>

namespace clefkit::ane {

// Where a program's files lie while its compiler reads them. Its path is the compiler's choice, so
// it may be there already: another process's, or left by one that was killed. Whose it is says a
// file in it that the owner keeps locked.
class WorkDirectory {
 public:
  WorkDirectory() = default;
  explicit WorkDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  // Removes the directory with all that is in it if this made it, or took it over.
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Makes it, or takes it over from a process that is no more. One that is somebody else's is only
  // used. Throws Error(kUnavailable).
  void make();

 private:
  std::filesystem::path path_;
  int owner_file_ = -1;  // Open and locked while this owns it.
};

// Removes all of them directly within `parent` whose process is no more.
void remove_abandoned_work(const std::filesystem::path& parent);

}  // namespace clefkit::ane
