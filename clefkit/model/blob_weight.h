#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace clefkit {

// Where a text program's weight lies: record offsets into a blob file.
struct BlobWeight {
  enum class Kind { kLut6, kFp16 };
  std::string name;
  std::string blob;  // Relative path.
  Kind kind = Kind::kFp16;
  std::vector<std::size_t> shape;
  std::uint64_t offset = 0;          // Of the values, or of the indices.
  std::uint64_t palette_offset = 0;  // kLut6 only.
};

}  // namespace clefkit
