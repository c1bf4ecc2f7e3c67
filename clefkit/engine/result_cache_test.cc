#include "clefkit/engine/result_cache.h"

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

// The key of 1 token is 5 bytes, the memory of one row another 4.
PrefixState state_of(std::size_t bytes) {
  return {std::make_unique<FakeSequence>(bytes - 9), FloatMatrix(1, 1)};
}

TEST(ResultCache, FindsExactlyTheTokensItWasGiven) {
  ResultCache cache(1000);
  cache.insert_prefix(Tokens{7}, "", state_of(100));
  EXPECT_NE(cache.find_prefix(Tokens{7}, ""), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{8}, ""), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{7, 8}, ""), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{}, ""), nullptr);
  EXPECT_EQ(cache.size_bytes(), 100u);
}

TEST(ResultCache, DropsTheLeastRecentlyUsed) {
  ResultCache cache(250);
  cache.insert_prefix(Tokens{1}, "", state_of(100));
  cache.insert_prefix(Tokens{2}, "", state_of(100));
  EXPECT_NE(cache.find_prefix(Tokens{1}, ""), nullptr);
  cache.insert_prefix(Tokens{3}, "", state_of(100));
  EXPECT_NE(cache.find_prefix(Tokens{1}, ""), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{2}, ""), nullptr);
  EXPECT_NE(cache.find_prefix(Tokens{3}, ""), nullptr);
  EXPECT_EQ(cache.entries(), 2u);
}

TEST(ResultCache, RefusesWhatIsLargerThanTheBudget) {
  ResultCache cache(50);
  EXPECT_FALSE(cache.accepts(51));
  cache.insert_prefix(Tokens{1}, "", state_of(51));
  EXPECT_EQ(cache.entries(), 0u);
  EXPECT_EQ(cache.size_bytes(), 0u);
}

TEST(ResultCache, TellsTheSameTokensWithOtherMediaApart) {
  ResultCache cache(1000);
  const std::string one(64, '1'), two(64, '2');
  cache.insert_prefix(Tokens{7}, one, state_of(100));
  EXPECT_NE(cache.find_prefix(Tokens{7}, one), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{7}, two), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{7}, ""), nullptr);
  EXPECT_EQ(cache.find_features(one), nullptr);
}

TEST(ResultCache, FeaturesAndPrefixesShareTheBudget) {
  ResultCache cache(300);
  const auto features = std::make_shared<FloatMatrix>(5, 5);  // 100 bytes.
  cache.insert_features("a", features);
  cache.insert_features("a", std::make_shared<FloatMatrix>(5, 5));
  cache.insert_prefix(Tokens{1}, "", state_of(100));
  EXPECT_EQ(cache.find_features("a"), features);
  EXPECT_EQ(cache.find_features("b"), nullptr);
  cache.insert_features("b", std::make_shared<FloatMatrix>(5, 5));
  EXPECT_NE(cache.find_features("a"), nullptr);
  EXPECT_EQ(cache.find_prefix(Tokens{1}, ""), nullptr);
  EXPECT_EQ(cache.entries(), 2u);
  EXPECT_LE(cache.size_bytes(), 300u);
}

}  // namespace
}  // namespace clefkit
