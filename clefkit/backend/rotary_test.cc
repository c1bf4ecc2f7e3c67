#include "clefkit/backend/rotary.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace clefkit {
namespace {

// Which position each frequency turns with, found by giving only one axis a position.
std::string axes_of(std::size_t rotary_dim, std::array<std::size_t, 3> section) {
  const RotaryAngles angles(10'000'000.0, rotary_dim, section);
  std::string axes(angles.half(), '?');
  const std::vector<std::int32_t> zero{0}, one{1};
  for (const char axis : {'T', 'H', 'W'}) {
    std::vector<float> cosines(angles.half()), sines(angles.half());
    angles.fill(axis == 'T' ? one : zero, axis == 'H' ? one : zero, axis == 'W' ? one : zero,
                {cosines.data(), 1, angles.half()}, {sines.data(), 1, angles.half()});
    for (std::size_t i = 0; i < angles.half(); ++i) {
      if (sines[i] != 0) axes[i] = axis;
    }
  }
  return axes;
}

TEST(RotaryAngles, InterleavesTheAxes) {
  EXPECT_EQ(axes_of(64, {11, 11, 10}), "THWTHWTHWTHWTHWTHWTHWTHWTHWTHWTH");
  EXPECT_EQ(axes_of(16, {3, 3, 2}), "THWTHWTH");
  EXPECT_EQ(axes_of(8, {2, 1, 1}), "THWT");
}

TEST(RotaryAngles, LeavesWhatASmallSectionDoesNotCoverToTime) {
  EXPECT_EQ(axes_of(24, {8, 2, 2}), "THWTHWTTTTTT");
}

TEST(RotaryAngles, GivesThePowersOfTheta) {
  const RotaryAngles angles(10'000'000.0, 64, std::array<std::size_t, 3>{11, 11, 10});
  const std::vector<std::int32_t> position{16383};
  std::vector<float> cosines(32), sines(32);
  angles.fill(position, position, position, {cosines.data(), 1, 32}, {sines.data(), 1, 32});
  for (std::size_t i = 0; i < 32; ++i) {
    const double angle = 16383 * std::pow(1e7, -2.0 * static_cast<double>(i) / 64);
    // float32 angles as in the reference: half a unit in the last place of 16383 is 5e-4.
    EXPECT_NEAR(cosines[i], std::cos(angle), 1e-3) << i;
    EXPECT_NEAR(sines[i], std::sin(angle), 1e-3) << i;
  }
  EXPECT_EQ(cosines[0], static_cast<float>(std::cos(16383.0)));
}

}  // namespace
}  // namespace clefkit
