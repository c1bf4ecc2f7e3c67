#include "clefkit/mil/weight_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/half.h"
#include "clefkit/base/sha256.h"
#include "clefkit/mil/bit_packing.h"

namespace clefkit::mil {
namespace {

using testing::HasSubstr;
using FileBytes = std::vector<std::uint8_t>;

WeightBlobWriter::Sink append_to(FileBytes& file) {
  return [&file](Bytes bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
}

Bytes bytes_of(const std::vector<Half>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(Half)};
}

// Four blobs of four types; made and read with Apple's own storage code, which gave the digest.
FileBytes four_types() {
  const std::vector<std::uint8_t> six_bits{1, 2, 3, 4, 63, 0, 32, 31, 5};
  std::vector<Half> halves(64);
  for (std::size_t i = 0; i < halves.size(); ++i)
    halves[i].bits = static_cast<std::uint16_t>(0x3C00 + i);
  const std::vector<std::uint8_t> three_bits{1, 2, 3, 4, 5, 6, 7, 0, 1};
  const std::vector<std::uint8_t> single_bits{1, 0, 0, 0, 1, 1, 0, 1, 1, 1};

  FileBytes file;
  WeightBlobWriter writer(append_to(file), 4);
  EXPECT_EQ(writer.add(BlobDataType::kUInt6, pack_bits(six_bits, 6), 9), 64);
  EXPECT_EQ(writer.add(BlobDataType::kFloat16, bytes_of(halves), 64), 192);
  EXPECT_EQ(writer.add(BlobDataType::kUInt3, pack_bits(three_bits, 3), 9), 384);
  EXPECT_EQ(writer.add(BlobDataType::kUInt1, pack_bits(single_bits, 1), 10), 512);
  writer.finish();
  return file;
}

// A LUT-6 weight [32, 4, 1, 1] with one palette per 16 rows: ±k/64, the second negative.
FileBytes palettized_weight() {
  std::vector<std::uint8_t> indices(32 * 4);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i % 64;
  std::vector<Half> palettes(2 * 64);
  for (std::size_t k = 0; k < 64; ++k) {
    palettes[k] = to_half(static_cast<float>(k) / 64);
    palettes[64 + k].bits = palettes[k].bits | 0x8000;  // Entry 0 is −0.
  }

  FileBytes file;
  WeightBlobWriter writer(append_to(file), 2);
  EXPECT_EQ(writer.add(BlobDataType::kUInt6, pack_bits(indices, 6), indices.size()), 64);
  EXPECT_EQ(writer.add(BlobDataType::kFloat16, bytes_of(palettes), palettes.size()), 256);
  writer.finish();
  return file;
}

TEST(WeightBlobWriter, WritesTheBytesOfApplesWriter) {
  EXPECT_EQ(four_types().size(), 578);
  EXPECT_EQ(sha256_hex(four_types()),
            "386c911b7bfc6e1bce8f389d25b61661f37b660e9392981092a845f9352b8c5e");
  EXPECT_EQ(palettized_weight().size(), 576);
  EXPECT_EQ(sha256_hex(palettized_weight()),
            "111b7de89624ddf7b8c868f779bc272935b04e69a79ffaa27bd4251ded89c5ca");
}

// Leaves the two files above for tests/blob_coremltools_test.py, which names the directory.
TEST(WeightBlobWriter, LeavesFilesForApplesReader) {
  const char* const directory = std::getenv("CLEFKIT_BLOB_DIRECTORY");
  if (directory == nullptr) GTEST_SKIP() << "CLEFKIT_BLOB_DIRECTORY is not set";
  write_file(std::filesystem::path(directory) / "four_types.bin", as_text(four_types()));
  write_file(std::filesystem::path(directory) / "palettized_weight.bin",
             as_text(palettized_weight()));
}

TEST(WeightBlobWriter, WritesAHeaderOnlyForNoBlobs) {
  FileBytes file;
  WeightBlobWriter(append_to(file), 0).finish();

  FileBytes expected(64);
  expected[4] = 2;
  EXPECT_EQ(file, expected);
}

TEST(WeightBlobWriter, HoldsTheCallerToTheAnnouncedCount) {
  FileBytes file;
  WeightBlobWriter writer(append_to(file), 1);
  EXPECT_THROW(writer.finish(), Error);
  writer.add(BlobDataType::kUInt8, FileBytes{7}, 1);
  writer.finish();
  EXPECT_THROW(writer.add(BlobDataType::kUInt8, FileBytes{7}, 1), Error);
}

TEST(WeightBlobWriter, RejectsDataOfAnotherSizeThanItsElements) {
  FileBytes file;
  WeightBlobWriter writer(append_to(file), 1);
  EXPECT_THROW(writer.add(BlobDataType::kUInt6, FileBytes(3), 5), Error);
  EXPECT_THROW(writer.add(BlobDataType::kFloat16, FileBytes(3), 1), Error);
}

TEST(WeightBlobReader, ReadsTypesCountsAndData) {
  const FileBytes file = four_types();
  const WeightBlobReader reader(file, "weights.bin");

  ASSERT_EQ(reader.records().size(), 4);
  const BlobRecord& six_bits = reader.at(64);
  EXPECT_EQ(six_bits.type, BlobDataType::kUInt6);
  EXPECT_EQ(six_bits.element_count, 9);
  EXPECT_EQ(FileBytes(six_bits.data.begin(), six_bits.data.end()),
            (FileBytes{0x81, 0x30, 0x10, 0x3F, 0x00, 0x7E, 0x05}));
  const BlobRecord& halves = reader.at(192);
  EXPECT_EQ(halves.type, BlobDataType::kFloat16);
  EXPECT_EQ(halves.element_count, 64);
  EXPECT_EQ(halves.data.data(), file.data() + 256);
  EXPECT_EQ(reader.at(384).element_count, 9);
  EXPECT_EQ(reader.at(512).element_count, 10);
}

TEST(WeightBlobReader, FindsOnlyOffsetsWhereARecordStarts) {
  const FileBytes file = palettized_weight();
  const WeightBlobReader reader(file, "weights.bin");
  for (const std::uint64_t offset : {0, 63, 65, 128, 320, 576, 640})
    EXPECT_THROW(reader.at(offset), Error) << offset;
}

TEST(WeightBlobReader, TrustsRecordsRatherThanTheCountAndIgnoresReservedBytes) {
  FileBytes file = palettized_weight();
  file[0] = 77;
  std::fill_n(file.begin() + 64 + 32, 32, std::uint8_t{0xAB});
  EXPECT_EQ(WeightBlobReader(file, "weights.bin").records().size(), 2);
}

TEST(WeightBlobReader, RejectsEveryTruncation) {
  const FileBytes file = four_types();
  // A file that ends with its second record's data is whole, only the count is then wrong.
  const std::vector<std::size_t> whole{64, 135, 384, 452, 578};
  for (std::size_t size = 0; size <= file.size(); ++size) {
    const Bytes part = Bytes(file).first(size);
    if (std::ranges::count(whole, size) != 0) {
      EXPECT_NO_THROW(WeightBlobReader(part, "weights.bin")) << size;
    } else {
      EXPECT_THROW(WeightBlobReader(part, "weights.bin"), Error) << size;
    }
  }
}

struct Damage {
  std::size_t at;  // Within palettized_weight().
  std::uint64_t value;
  const char* message;
};

class DamagedWeightBlob : public testing::TestWithParam<Damage> {};

TEST_P(DamagedWeightBlob, IsRejectedWithThePlace) {
  FileBytes file = palettized_weight();
  store_le(file.data() + GetParam().at, GetParam().value);
  try {
    WeightBlobReader(file, "weights.bin");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    EXPECT_EQ(error.where(), "weights.bin");
    EXPECT_THAT(error.message(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DamagedWeightBlob,
    testing::Values(Damage{0, 0x100000002, "version 1, expected 2"},
                    Damage{64, 0x0DDEADBEEE, "record at 64: sentinel"},
                    Damage{64, 0x12DEADBEEF, "unknown data type 18"},
                    Damage{64, 0x00DEADBEEF, "unknown data type 0"},
                    Damage{72, 97, "record at 64: 97 bytes with 0 unused bits"},
                    Damage{72, 195, "record at 384: sentinel"},  // Overlaps the next.
                    Damage{72, 449, "data bytes 449, expected 448"},
                    Damage{72, ~std::uint64_t{0}, "data bytes 18446744073709551615"},
                    Damage{80, 64, "data offset 64, expected 128"},
                    Damage{80, 192, "data offset 192, expected 128"},
                    Damage{80, ~std::uint64_t{0}, "data offset"}, Damage{88, 8, "8 unused bits"},
                    Damage{88, 1, "1 unused bits"}, Damage{88, ~std::uint64_t{0}, "unused bits"},
                    Damage{264, 0, "record at 320: sentinel"},
                    Damage{264, 255, "elements of 16 bits"}));

}  // namespace
}  // namespace clefkit::mil
