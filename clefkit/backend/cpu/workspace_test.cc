#include "clefkit/backend/cpu/workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace clefkit::cpu {
namespace {

TEST(Workspace, HandsOutMatricesThatDoNotOverlap) {
  Workspace workspace;
  const Workspace::Scope scope(workspace);
  const MatrixView<float> a = workspace.matrix(3, 5), b = workspace.matrix(7, 11);
  for (std::size_t i = 0; i < 3; ++i) std::ranges::fill(a.row(i), 1.0f);
  for (std::size_t i = 0; i < 7; ++i) std::ranges::fill(b.row(i), 2.0f);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::ranges::all_of(a.row(i), [](float value) { return value == 1.0f; }));
  }
}

TEST(Workspace, ReusesWhatAScopeGaveBack) {
  Workspace workspace;
  const Workspace::Scope outer(workspace);
  const float* kept = workspace.matrix(2, 2).data;
  const float* first = nullptr;
  {
    const Workspace::Scope inner(workspace);
    first = workspace.matrix(4, 4).data;
  }
  EXPECT_EQ(workspace.matrix(4, 4).data, first);
  EXPECT_NE(kept, first);
}

TEST(Workspace, NeedsNothingNewForTheSecondCallOfASize) {
  Workspace workspace;
  std::vector<std::pair<const float*, const float*>> calls;
  for (int call = 0; call < 3; ++call) {
    const Workspace::Scope scope(workspace);
    const float* a = workspace.matrix(10, 10).data;
    calls.emplace_back(a, workspace.matrix(20, 20).data);
  }
  // The first call made two blocks; from the second on both matrices lie in one.
  EXPECT_EQ(calls[1], calls[2]);
}

}  // namespace
}  // namespace clefkit::cpu
