#include "clefkit/engine/positions.h"

#include <gmock/gmock.h>

namespace clefkit {
namespace {

using testing::ElementsAre;

TEST(MropePositions, CountUpInText) {
  const Positions positions = mrope_positions(3, {});
  EXPECT_THAT(positions.temporal, ElementsAre(0, 1, 2));
  EXPECT_THAT(positions.height, ElementsAre(0, 1, 2));
  EXPECT_THAT(positions.width, ElementsAre(0, 1, 2));
  EXPECT_TRUE(mrope_positions(0, {}).temporal.empty());
}

TEST(MropePositions, SpreadMediaOverRowsAndColumns) {
  // Two tokens of text, a run of 2 by 3, one of text, a run of 3 by 1, one of text.
  const std::vector<MediaRun> runs{{{2, 8}, 2, 3}, {{9, 12}, 3, 1}};
  const Positions positions = mrope_positions(13, runs);
  EXPECT_THAT(positions.temporal, ElementsAre(0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 6, 6, 9));
  EXPECT_THAT(positions.height, ElementsAre(0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7, 8, 9));
  EXPECT_THAT(positions.width, ElementsAre(0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 6, 6, 9));
}

TEST(MropePositions, AnImageOf20By16PatchesTakesTenOffTheCount) {
  const std::vector<MediaRun> runs{{{1, 81}, 10, 8}};
  const Positions positions = mrope_positions(82, runs);
  EXPECT_EQ(positions.temporal[80], 1);
  EXPECT_EQ(positions.height[80], 10);
  EXPECT_EQ(positions.width[80], 8);
  EXPECT_EQ(positions.temporal[81], 11);
}

TEST(MropePositions, RunsMayTouchTheEnds) {
  const std::vector<MediaRun> runs{{{0, 1}, 1, 1}, {{1, 3}, 1, 2}};
  EXPECT_THAT(mrope_positions(3, runs).width, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace clefkit
