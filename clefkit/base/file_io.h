#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "clefkit/base/bytes.h"

namespace clefkit {

// Reads a whole file of at most `limit_bytes`. Throws Error: kNotFound, kUnavailable, or
// kCorruptData when the file is larger.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes);

// Writes one file so that a reader sees either nothing, the file that was there before, or all of
// the new one: bytes go to `<path>.tmp`, commit() flushes them to the disk and renames. Without
// commit() the destructor removes the temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws Error(kUnavailable) naming the path, e.g. when the disk is full.
  void write(Bytes bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  std::uint64_t size_bytes() const { return size_bytes_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int file_ = -1;
  std::uint64_t size_bytes_ = 0;
};

// Makes a directory so that a reader sees either nothing or all of it: files gather in
// `<path>.partial`, commit() renames that. Without commit() the destructor removes it.
class AtomicDirectory {
 public:
  // Makes `<path>.partial` and what is missing above it. Throws Error(kInvalidArgument) when `path`
  // is there already, unless it is an empty directory, and when `<path>.partial` is: someone else
  // is writing it, or was killed while doing so.
  explicit AtomicDirectory(const std::filesystem::path& path);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }  // Without a slash at the end.
  const std::filesystem::path& partial() const { return partial_; }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
  bool is_committed_ = false;
};

// AtomicFile with one write.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace clefkit
