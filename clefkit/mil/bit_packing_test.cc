#include "clefkit/mil/bit_packing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace clefkit::mil {
namespace {

using Values = std::vector<std::uint8_t>;

// spec of the file format, worked examples.
TEST(BitPacking, PutsFourSixBitValuesInThreeBytes) {
  EXPECT_EQ(pack_bits(Values{1, 2, 3, 4}, 6), (Values{0x81, 0x30, 0x10}));
}

TEST(BitPacking, LeavesUnusedTopBitsZero) {
  EXPECT_EQ(pack_bits(Values{1, 2, 3, 4, 63, 0, 32, 31, 5}, 6),
            (Values{0x81, 0x30, 0x10, 0x3F, 0x00, 0x7E, 0x05}));
  EXPECT_EQ(pack_bits(Values{1, 2, 3, 4, 5, 6, 7, 0, 1}, 3), (Values{0xD1, 0x58, 0x1F, 0x01}));
  EXPECT_EQ(pack_bits(Values{1, 0, 0, 0, 1, 1, 0, 1, 1, 1}, 1), (Values{0xB1, 0x03}));
}

TEST(BitPacking, KeepsWholeBytesAsTheyAre) {
  EXPECT_EQ(pack_bits(Values{0, 127, 255}, 8), (Values{0, 127, 255}));
  EXPECT_EQ(pack_bits({}, 6), Values{});
}

TEST(BitPacking, UnpacksWhatItPackedForEveryWidthAndOddCounts) {
  for (unsigned bits = 1; bits <= 8; ++bits) {
    for (std::size_t count = 0; count < 20; ++count) {
      Values values(count);
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<std::uint8_t>((i * 37 + 255) & ((1u << bits) - 1));
      const Values packed = pack_bits(values, bits);
      EXPECT_EQ(packed.size(), packed_size_bytes(count, bits));
      EXPECT_EQ(unpack_bits(packed, count, bits), values) << bits << " bits, " << count;
    }
  }
}

}  // namespace
}  // namespace clefkit::mil
