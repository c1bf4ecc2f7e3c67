#pragma once

#include <filesystem>

#include "clefkit/base/bytes.h"

namespace clefkit {

// A whole file, mapped read-only. Movable; the bytes stay where they are until destruction.
class MappedFile {
 public:
  // Throws Error(kNotFound) when the file is absent, kUnavailable when it cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return {data_, size_}; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// Tells the system that these mapped bytes are not needed soon, so that reading through a file of
// any size keeps little of it resident. They stay readable.
void release_pages(Bytes mapped);

}  // namespace clefkit
