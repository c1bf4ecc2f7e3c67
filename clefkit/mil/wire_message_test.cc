#include "clefkit/mil/wire_message.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace clefkit::mil {
namespace {

// Of bytes that may be zero.
std::string text(const std::vector<int>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string integer(std::uint32_t field, std::int64_t value) {
  WireMessage message;
  message.add_integer(field, value);
  return message.bytes();
}

TEST(WireMessage, WritesVarintsSevenBitsAByteLowestFirst) {
  EXPECT_EQ(integer(1, 0), text({0x08, 0x00}));
  EXPECT_EQ(integer(1, 1), text({0x08, 0x01}));
  EXPECT_EQ(integer(1, 127), text({0x08, 0x7F}));
  EXPECT_EQ(integer(1, 128), text({0x08, 0x80, 0x01}));
  // 300 = 2 · 128 + 44.
  EXPECT_EQ(integer(1, 300), text({0x08, 0xAC, 0x02}));
  // 2^63 - 1: nine times seven ones.
  EXPECT_EQ(integer(1, std::numeric_limits<std::int64_t>::max()),
            text({0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}));
}

TEST(WireMessage, WritesNegativeNumbersInTenBytes) {
  EXPECT_EQ(integer(2, -1),
            text({0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));
  // …11111110 in two's complement.
  EXPECT_EQ(integer(2, -2),
            text({0x10, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));
  EXPECT_EQ(integer(2, std::numeric_limits<std::int64_t>::min()),
            text({0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}));
}

TEST(WireMessage, WritesLargeFieldNumbersAsVarintsToo) {
  EXPECT_EQ(integer(15, 1), text({0x78, 0x01}));
  EXPECT_EQ(integer(16, 1), text({0x80, 0x01, 0x01}));
  // 502 · 8 = 4016 = 31 · 128 + 48.
  EXPECT_EQ(integer(502, 1), text({0xB0, 0x1F, 0x01}));
}

TEST(WireMessage, WritesLengthsBeforeTextsAndMessages) {
  WireMessage inner;
  inner.add_text(1, "ab");
  EXPECT_EQ(inner.bytes(), text({0x0A, 0x02, 'a', 'b'}));

  WireMessage outer;
  outer.add_message(3, inner);
  outer.add_text(4, "");
  outer.add_message(5, WireMessage());
  EXPECT_EQ(outer.bytes(), text({0x1A, 0x04, 0x0A, 0x02, 'a', 'b', 0x22, 0x00, 0x2A, 0x00}));
}

TEST(WireMessage, WritesLongLengthsInSeveralBytes) {
  WireMessage message;
  message.add_text(1, std::string(200, 'x'));
  EXPECT_EQ(message.bytes(), text({0x0A, 0xC8, 0x01}) + std::string(200, 'x'));
}

TEST(WireMessage, PacksListsOfNumbers) {
  WireMessage message;
  message.add_packed_integers(1, std::vector<std::int64_t>{1, 300, 0});
  EXPECT_EQ(message.bytes(), text({0x0A, 0x04, 0x01, 0xAC, 0x02, 0x00}));

  WireMessage floats;
  floats.add_packed_floats(2, std::vector<float>{1.0f, -0.5f});  // 3F800000, BF000000
  EXPECT_EQ(floats.bytes(), text({0x12, 0x08, 0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x00, 0xBF}));

  WireMessage empty;
  empty.add_packed_integers(1, {});
  EXPECT_EQ(empty.bytes(), text({0x0A, 0x00}));
}

}  // namespace
}  // namespace clefkit::mil
