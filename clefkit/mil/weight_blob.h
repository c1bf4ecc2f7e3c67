#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"

// Core ML's weight file ("MILBlob" storage, version 2), which MIL text points into by
// BLOBFILE(path, offset). All integers are little-endian:
//
//   0    u32 count of records, u32 version 2, zeros up to 64
//   64   record: u32 0xDEADBEEF, u32 data type, u64 size in bytes, u64 offset of the data,
//        u64 unused bits at the end of the data, 32 zero bytes
//   128  data, zeros up to the next multiple of 64, where the next record starts
//
// Nothing follows the last data. A blob is named by the offset of its record.
namespace clefkit::mil {

inline constexpr std::uint64_t kBlobAlignment = 64;

enum class BlobDataType : std::uint32_t {
  kFloat16 = 1,
  kFloat32 = 2,
  kUInt8 = 3,
  kInt8 = 4,
  kBFloat16 = 5,
  kInt16 = 6,
  kUInt16 = 7,
  kInt4 = 8,
  kUInt1 = 9,
  kUInt2 = 10,
  kUInt4 = 11,
  kUInt3 = 12,
  kUInt6 = 13,
  kInt32 = 14,
  kUInt32 = 15,
  kFloat8E4M3FN = 16,
  kFloat8E5M2 = 17,
};

// 1 to 32, or 0 when `type` is none of the above.
unsigned bits_per_element(BlobDataType type);

// Writes a weight file front to back through `sink`, e.g. AtomicFile::write.
class WeightBlobWriter {
 public:
  using Sink = std::function<void(Bytes)>;

  // `record_count` goes into the header, so it must be known here.
  WeightBlobWriter(Sink sink, std::uint32_t record_count);

  // Appends one blob of `element_count` elements (packed as in bit_packing.h when they are smaller
  // than a byte) and returns the offset that names it. Throws Error(kInternal) when `data` has
  // another size than the elements take, or for a blob more than was announced.
  std::uint64_t add(BlobDataType type, Bytes data, std::uint64_t element_count);

  // Throws Error(kInternal) unless all announced blobs were added.
  void finish() const;

 private:
  void write(Bytes bytes);
  void pad_to_alignment();

  Sink sink_;
  std::uint32_t record_count_;
  std::uint32_t added_ = 0;
  std::uint64_t end_ = 0;
};

// One blob of a file that is mapped elsewhere.
struct BlobRecord {
  std::uint64_t offset = 0;  // Of the record: what BLOBFILE gives.
  BlobDataType type = BlobDataType::kFloat16;
  std::uint64_t element_count = 0;
  Bytes data;
};

// The records of a weight file. Views the bytes, which must outlive it.
class WeightBlobReader {
 public:
  // Walks the whole file. Throws Error(kCorruptData) with `where` and the offset for anything that
  // departs from the layout above, except the header's count, which public writers get wrong, and
  // the reserved bytes, which files from before iOS 18 fill with garbage.
  WeightBlobReader(Bytes file, std::string where);

  const std::vector<BlobRecord>& records() const { return records_; }

  // Throws Error(kCorruptData) when no record starts at `offset`.
  const BlobRecord& at(std::uint64_t offset) const;

 private:
  BlobRecord read_record(Bytes file, std::uint64_t offset) const;

  std::string where_;
  std::vector<BlobRecord> records_;  // By offset.
};

}  // namespace clefkit::mil
