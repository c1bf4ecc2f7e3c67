#include "clefkit/engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace clefkit {
namespace {

class FakeSequence : public SequenceState {
 public:
  explicit FakeSequence(std::size_t bytes) : bytes_(bytes) {}
  std::size_t tokens() const override { return 1; }
  std::size_t size_bytes() const override { return bytes_; }
  std::unique_ptr<SequenceState> clone(std::size_t) const override {
    return std::make_unique<FakeSequence>(bytes_);
  }

 private:
  std::size_t bytes_;
};

using Tokens = std::vector<std::int32_t>;

// 1 token is 4 bytes, the memory of one row another 4.
PrefixState state_of(std::size_t bytes) {
  return {std::make_unique<FakeSequence>(bytes - 8), FloatMatrix(1, 1)};
}

TEST(PrefixCache, FindsExactlyTheTokensItWasGiven) {
  PrefixCache cache(1000);
  cache.insert(Tokens{7}, state_of(100));
  EXPECT_NE(cache.find(Tokens{7}), nullptr);
  EXPECT_EQ(cache.find(Tokens{8}), nullptr);
  EXPECT_EQ(cache.find(Tokens{7, 8}), nullptr);
  EXPECT_EQ(cache.find(Tokens{}), nullptr);
  EXPECT_EQ(cache.size_bytes(), 100u);
}

TEST(PrefixCache, DropsTheLeastRecentlyUsed) {
  PrefixCache cache(250);
  cache.insert(Tokens{1}, state_of(100));
  cache.insert(Tokens{2}, state_of(100));
  EXPECT_NE(cache.find(Tokens{1}), nullptr);
  cache.insert(Tokens{3}, state_of(100));
  EXPECT_NE(cache.find(Tokens{1}), nullptr);
  EXPECT_EQ(cache.find(Tokens{2}), nullptr);
  EXPECT_NE(cache.find(Tokens{3}), nullptr);
  EXPECT_EQ(cache.entries(), 2u);
}

TEST(PrefixCache, RefusesWhatIsLargerThanTheBudget) {
  PrefixCache cache(50);
  EXPECT_FALSE(cache.accepts(51));
  cache.insert(Tokens{1}, state_of(51));
  EXPECT_EQ(cache.entries(), 0u);
  EXPECT_EQ(cache.size_bytes(), 0u);
}

}  // namespace
}  // namespace clefkit
