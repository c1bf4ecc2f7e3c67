#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/media/processor.h"

namespace clefkit {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Pointwise;

ProcessorSettings release() { return {}; }

ProcessorSettings ane() {
  ProcessorSettings settings;
  settings.profile = MediaProfile::kAne;
  settings.max_frames = 64;
  return settings;
}

std::vector<double> constant_rate(std::size_t frames, double rate) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < frames; ++i) seconds.push_back(static_cast<double>(i) / rate);
  return seconds;
}

// As Matroska stores them.
std::vector<double> in_milliseconds(std::vector<double> seconds) {
  for (double& time : seconds) time = std::round(time * 1000) / 1000;
  return seconds;
}

TEST(SampleFrames, TakesTheReleasesIndices) {
  EXPECT_THAT(sample_frames(constant_rate(9, 6), release()).indices, ElementsAre(0, 3, 5, 8));
  EXPECT_THAT(sample_frames(constant_rate(3, 24), release()).indices, ElementsAre(0, 1, 2));
  // numpy.linspace(0, 39, 8).round(), 39 · i / 7.
  EXPECT_THAT(sample_frames(constant_rate(40, 10), release()).indices,
              ElementsAre(0, 6, 11, 17, 22, 28, 33, 39));
  // 2.5 and 7.5 round to the even neighbour.
  EXPECT_THAT(sample_frames(constant_rate(11, 4.4), release()).indices,
              ElementsAre(0, 2, 5, 8, 10));
}

TEST(SampleFrames, TakesAllOfAVeryShortClip) {
  for (const ProcessorSettings& settings : {release(), ane()}) {
    EXPECT_THAT(sample_frames(std::vector{0.0}, settings).indices, ElementsAre(0));
    EXPECT_THAT(sample_frames(std::vector{0.0, 0.5}, settings).indices, ElementsAre(0, 1));
    EXPECT_THAT(sample_frames(std::vector{0.0, 0.0}, settings).indices.size(), 2u);
  }
}

TEST(SampleFrames, KeepsToTheMostFrames) {
  const std::vector<double> hour = constant_rate(36'000, 10);
  EXPECT_EQ(sample_frames(hour, release()).indices.size(), 768u);
  EXPECT_EQ(sample_frames(hour, ane()).indices.size(), 64u);
  EXPECT_EQ(sample_frames(hour, ane()).indices.back(), 35'999u);
}

TEST(SampleFrames, CountsTheRateInSpiteOfRoundedTimes) {
  // 72 frames at 24 a second are 3 s: 6 frames, though the last time is 2.958 and not 2.95833.
  const std::vector<double> rounded = in_milliseconds(constant_rate(72, 24));
  const ChosenFrames chosen = sample_frames(rounded, release());
  EXPECT_THAT(chosen.indices, ElementsAre(0, 14, 28, 43, 57, 71));
  EXPECT_THAT(chosen.seconds,
              Pointwise(DoubleEq(), {0.0, 14 / 24., 28 / 24., 43 / 24., 57 / 24., 71 / 24.}));
  EXPECT_EQ(sample_frames(rounded, ane()).indices.size(), 6u);

  const double television = 30000. / 1001;
  EXPECT_THAT(sample_frames(in_milliseconds(constant_rate(90, television)), release()).seconds[1],
              DoubleEq(18 / television));
}

TEST(SampleFrames, GivesAneFramesTheirOwnTimes) {
  // Three slow frames, then many fast ones.
  const std::vector<double> seconds{0, 1, 2, 2.05, 2.1, 2.15, 2.2, 2.25, 2.4};
  // 9 frames at 8/2.4 a second: 5 of them, at 0, 0.6, 1.2, 1.8 and 2.4 s.
  const ChosenFrames chosen = sample_frames(seconds, ane());
  EXPECT_THAT(chosen.indices, ElementsAre(0, 1, 1, 2, 8));
  EXPECT_THAT(chosen.seconds, ElementsAre(0, 1, 1, 2, 2.4));
  // The release goes by index and by the mean rate.
  const ChosenFrames by_index = sample_frames(seconds, release());
  EXPECT_THAT(by_index.indices, ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(by_index.seconds, Pointwise(DoubleEq(), {0.0, 0.6, 1.2, 1.8, 2.4}));
}

TEST(SampleFrames, TakesTheEarlierOfTwoFramesAsNear) {
  // 5 of 11 frames: the second at 0.25 s, between 0.2 and 0.3 s.
  EXPECT_THAT(sample_frames(constant_rate(11, 10),
                            [] {
                              ProcessorSettings settings = ane();
                              settings.num_frames = 5;
                              return settings;
                            }())
                  .indices,
              ElementsAre(0, 2, 5, 7, 10));
}

TEST(SampleFrames, FollowsFpsAndNumFrames) {
  ProcessorSettings settings = release();
  settings.fps = 1;
  EXPECT_EQ(sample_frames(constant_rate(100, 10), settings).indices.size(), 10u);
  settings.fps = 1e300;
  EXPECT_EQ(sample_frames(constant_rate(100, 10), settings).indices.size(), 100u);
  settings.fps = 1e-300;
  EXPECT_EQ(sample_frames(constant_rate(100, 10), settings).indices.size(), 4u);
  settings.num_frames = 3;
  EXPECT_THAT(sample_frames(constant_rate(100, 10), settings).indices, ElementsAre(0, 50, 99));
  settings.num_frames = 1;
  EXPECT_THAT(sample_frames(constant_rate(100, 10), settings).indices, ElementsAre(0));
  // More than there are: repeated. numpy.linspace(0, 1, 5).round(), halves to even.
  settings.num_frames = 5;
  EXPECT_THAT(sample_frames(constant_rate(2, 10), settings).indices, ElementsAre(0, 0, 0, 1, 1));
}

TEST(SampleFrames, RefusesNoFramesAndImpossibleTimes) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& seconds :
       {std::vector<double>{}, {0, 1, 0.5}, {-1, 0}, {0, kNan, 1}, {0, HUGE_VAL}}) {
    EXPECT_THROW(sample_frames(seconds, release()), Error);
    EXPECT_THROW(sample_frames(seconds, ane()), Error);
  }
}

}  // namespace
}  // namespace clefkit
