#include "clefkit/mil/weight_blob.h"

#include <algorithm>
#include <array>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit::mil {
namespace {

constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kSentinel = 0xDEADBEEF;

struct Header {
  std::uint32_t count;
  std::uint32_t version;
  std::uint64_t reserved[7];
};
static_assert(sizeof(Header) == kBlobAlignment);

struct StoredRecord {
  std::uint32_t sentinel;
  std::uint32_t type;
  std::uint64_t size_bytes;
  std::uint64_t data_offset;
  std::uint64_t unused_bits;
  std::uint64_t reserved[4];
};
static_assert(sizeof(StoredRecord) == kBlobAlignment);

template <typename T>
Bytes bytes_of(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}

}  // namespace

unsigned bits_per_element(BlobDataType type) {
  switch (type) {
    case BlobDataType::kUInt1:
      return 1;
    case BlobDataType::kUInt2:
      return 2;
    case BlobDataType::kUInt3:
      return 3;
    case BlobDataType::kInt4:
    case BlobDataType::kUInt4:
      return 4;
    case BlobDataType::kUInt6:
      return 6;
    case BlobDataType::kInt8:
    case BlobDataType::kUInt8:
    case BlobDataType::kFloat8E4M3FN:
    case BlobDataType::kFloat8E5M2:
      return 8;
    case BlobDataType::kFloat16:
    case BlobDataType::kBFloat16:
    case BlobDataType::kInt16:
    case BlobDataType::kUInt16:
      return 16;
    case BlobDataType::kFloat32:
    case BlobDataType::kInt32:
    case BlobDataType::kUInt32:
      return 32;
  }
  return 0;
}

WeightBlobWriter::WeightBlobWriter(Sink sink, std::uint32_t record_count)
    : sink_(std::move(sink)), record_count_(record_count) {
  write(bytes_of(Header{.count = record_count, .version = kVersion, .reserved = {}}));
}

std::uint64_t WeightBlobWriter::add(BlobDataType type, Bytes data, std::uint64_t element_count) {
  const std::uint64_t bits = element_count * bits_per_element(type);
  if (data.size() != (bits + 7) / 8) {
    throw_error(ErrorCode::kInternal, "weight file", "{} bytes for {} elements, expected {}",
                data.size(), element_count, (bits + 7) / 8);
  }
  if (added_ == record_count_) {
    throw_error(ErrorCode::kInternal, "weight file", "more than the {} blobs announced",
                record_count_);
  }
  ++added_;
  // Readers map blobs in place, so each starts on its own 64-byte line.
  pad_to_alignment();
  const std::uint64_t offset = end_;
  write(bytes_of(StoredRecord{.sentinel = kSentinel,
                              .type = static_cast<std::uint32_t>(type),
                              .size_bytes = data.size(),
                              .data_offset = offset + sizeof(StoredRecord),
                              .unused_bits = data.size() * 8 - bits,
                              .reserved = {}}));
  write(data);
  return offset;
}

void WeightBlobWriter::finish() const {
  if (added_ != record_count_) {
    throw_error(ErrorCode::kInternal, "weight file", "{} blobs, {} were announced", added_,
                record_count_);
  }
}

void WeightBlobWriter::write(Bytes bytes) {
  sink_(bytes);
  end_ += bytes.size();
}

void WeightBlobWriter::pad_to_alignment() {
  static constexpr std::array<std::uint8_t, kBlobAlignment> kZeros{};
  write(Bytes(kZeros).first(align_up(end_, kBlobAlignment) - end_));
}

WeightBlobReader::WeightBlobReader(Bytes file, std::string where) : where_(std::move(where)) {
  if (file.size() < sizeof(Header)) {
    throw_error(ErrorCode::kCorruptData, where_, "{} bytes, expected a header of {}", file.size(),
                sizeof(Header));
  }
  const auto header = load_le<Header>(file.data());
  if (header.version != kVersion) {
    throw_error(ErrorCode::kCorruptData, where_, "weight file version {}, expected {}",
                header.version, kVersion);
  }
  std::uint64_t end = sizeof(Header);
  while (end != file.size()) {
    const BlobRecord record = read_record(file, align_up(end, kBlobAlignment));
    end = record.offset + sizeof(StoredRecord) + record.data.size();
    records_.push_back(record);
  }
}

BlobRecord WeightBlobReader::read_record(Bytes file, std::uint64_t offset) const {
  const auto require = [&](bool holds, std::string_view what, std::uint64_t found,
                           std::uint64_t expected) {
    if (holds) return;
    throw_error(ErrorCode::kCorruptData, where_, "record at {}: {} {}, expected {}", offset, what,
                found, expected);
  };
  require(offset <= file.size() && file.size() - offset >= sizeof(StoredRecord), "file ends at",
          file.size(), offset + sizeof(StoredRecord));
  const auto stored = load_le<StoredRecord>(file.data() + offset);
  require(stored.sentinel == kSentinel, "sentinel", stored.sentinel, kSentinel);
  const std::uint64_t data_offset = offset + sizeof(StoredRecord);
  require(stored.data_offset == data_offset, "data offset", stored.data_offset, data_offset);
  require(stored.size_bytes <= file.size() - data_offset, "data bytes", stored.size_bytes,
          file.size() - data_offset);

  const auto type = static_cast<BlobDataType>(stored.type);
  const std::uint64_t element_bits = bits_per_element(type);
  if (element_bits == 0) {
    throw_error(ErrorCode::kCorruptData, where_, "record at {}: unknown data type {}", offset,
                stored.type);
  }
  // Below 2^64: the data lies within the file.
  const std::uint64_t bits = stored.size_bytes * 8;
  if (stored.unused_bits >= 8 || stored.unused_bits > bits ||
      (bits - stored.unused_bits) % element_bits != 0) {
    throw_error(ErrorCode::kCorruptData, where_,
                "record at {}: {} bytes with {} unused bits, expected elements of {} bits", offset,
                stored.size_bytes, stored.unused_bits, element_bits);
  }
  return {.offset = offset,
          .type = type,
          .element_count = (bits - stored.unused_bits) / element_bits,
          .data = file.subspan(data_offset, stored.size_bytes)};
}

const BlobRecord& WeightBlobReader::at(std::uint64_t offset) const {
  const auto found = std::ranges::lower_bound(records_, offset, {}, &BlobRecord::offset);
  if (found == records_.end() || found->offset != offset) {
    throw_error(ErrorCode::kCorruptData, where_, "no record at offset {}", offset);
  }
  return *found;
}

}  // namespace clefkit::mil
