#include "clefkit/backend/ane/port_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/base/error.h"

namespace clefkit::ane {
namespace {

using Access = Surface::Access;

std::vector<Half> counted(std::size_t count) {
  std::vector<Half> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(to_half(static_cast<float>(i + 1)));
  return values;
}

// [1, 2, 3, 5] with rows of 16 bytes and a gap behind each channel.
PortLayout padded() {
  return {.name = "x", .shape = {1, 2, 3, 5}, .strides = {112, 56, 16, 2}, .bytes = 112};
}

TEST(PortMemory, PutsElementsWhereTheStridesSay) {
  const PortLayout layout = padded();
  PlainSurface surface(layout.bytes);
  const std::vector<Half> values = counted(30);
  PortMemory(layout, surface, Access::kWrite).write(values);
  const auto at = [&](std::size_t offset) {
    return Half{static_cast<std::uint16_t>(surface.lock(Access::kRead)[offset] |
                                           surface.lock(Access::kRead)[offset + 1] << 8)};
  };
  EXPECT_EQ(at(0), to_half(1.0f));
  EXPECT_EQ(at(8), to_half(5.0f));
  EXPECT_EQ(at(10), Half());  // Padding.
  EXPECT_EQ(at(16), to_half(6.0f));
  EXPECT_EQ(at(56), to_half(16.0f));
  EXPECT_EQ(at(56 + 2 * 16 + 8), to_half(30.0f));
  std::vector<Half> back(30);
  PortMemory(layout, surface, Access::kRead).read(back);
  EXPECT_EQ(back, values);
}

TEST(PortMemory, WritesRowsAsColumnsAndLeavesTheRest) {
  const PortLayout layout{
      .name = "k", .shape = {1, 3, 1, 4}, .strides = {24, 8, 8, 2}, .bytes = 24};
  PlainSurface surface(layout.bytes);
  std::vector<Half> rows = counted(6);  // Two tokens of three channels.
  PortMemory(layout, surface, Access::kWrite)
      .write_columns(1, MatrixView<const Half>(rows.data(), 2, 3));
  std::vector<Half> all(12);
  PortMemory(layout, surface, Access::kRead).read(all);
  std::vector<Half> expected;
  for (const float value : {0.f, 1.f, 4.f, 0.f, 0.f, 2.f, 5.f, 0.f, 0.f, 3.f, 6.f, 0.f}) {
    expected.push_back(to_half(value));
  }
  EXPECT_EQ(all, expected);
  std::vector<Half> back(6);
  PortMemory(layout, surface, Access::kRead).read_columns(1, MatrixView<Half>(back.data(), 2, 3));
  EXPECT_EQ(back, rows);
}

TEST(PortMemory, FindsWhatIsNotFinite) {
  const PortLayout layout = padded();
  for (const std::uint16_t bits : std::vector<std::uint16_t>{0x7C00, 0xFC00, 0x7E01, 0x7BFF}) {
    PlainSurface surface(layout.bytes);
    std::vector<Half> values = counted(30);
    values.back().bits = bits;
    PortMemory memory(layout, surface, Access::kWrite);
    EXPECT_TRUE(memory.is_finite());
    memory.write(values);
    EXPECT_EQ(memory.is_finite(), bits == 0x7BFF) << bits;
  }
}

TEST(PortMemory, RefusesASurfaceThatIsTooSmall) {
  const PortLayout layout = padded();
  PlainSurface surface(56 + 2 * 16 + 8);  // Without the last element.
  EXPECT_THROW(PortMemory(layout, surface, Access::kRead), Error);
}

}  // namespace
}  // namespace clefkit::ane
