#include "clefkit/text/byte_pair_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace clefkit {
namespace {

std::array<std::int32_t, 256> bytes_as_tokens() {
  std::array<std::int32_t, 256> tokens{};
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i);
  return tokens;
}

using Ids = std::vector<std::int32_t>;
using Merges = std::vector<BytePairEncoder::Merge>;

Ids encode(const Merges& merges, std::string_view piece) {
  Ids ids;
  BytePairEncoder(bytes_as_tokens(), merges).encode(piece, ids);
  return ids;
}

// The definition, step by step.
Ids encode_by_definition(const Merges& merges, std::string_view piece) {
  Ids ids;
  for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best_place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == ids[i] && merges[rank].right == ids[i + 1]) {
          best_rank = rank;
          best_place = i;
        }
      }
    }
    if (best_rank == merges.size()) return ids;
    ids[best_place] = merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_place) + 1);
  }
}

TEST(BytePairEncoder, WithoutMergesGivesTheBytes) {
  EXPECT_EQ(encode({}, ""), Ids());
  EXPECT_EQ(encode({}, "a\xFF"), (Ids{'a', 255}));
}

TEST(BytePairEncoder, TakesTheLowestRankFirst) {
  const Merges merges{{'b', 'c', 300}, {'a', 'b', 301}, {301, 'c', 302}};
  EXPECT_EQ(encode(merges, "abc"), (Ids{'a', 300}));
  EXPECT_EQ(encode(merges, "abd"), (Ids{301, 'd'}));
}

TEST(BytePairEncoder, TakesTheLeftmostOfEqualRank) {
  const Merges merges{{'a', 'a', 300}};
  EXPECT_EQ(encode(merges, "aaa"), (Ids{300, 'a'}));
  EXPECT_EQ(encode(merges, "aaaa"), (Ids{300, 300}));
}

TEST(BytePairEncoder, GivesARepeatedPairItsLaterRank) {
  const Merges merges{{'a', 'b', 300}, {'b', 'c', 301}, {'a', 'b', 300}};
  EXPECT_EQ(encode(merges, "abc"), (Ids{'a', 301}));
}

TEST(BytePairEncoder, AppendsToWhatIsThere) {
  Ids ids{7};
  BytePairEncoder(bytes_as_tokens(), {}).encode("a", ids);
  EXPECT_EQ(ids, (Ids{7, 'a'}));
}

TEST(BytePairEncoder, AgreesWithTheDefinitionAtEveryLength) {
  std::mt19937 random(1);
  // Random merges over three letters, of parts made earlier, so that ranks conflict everywhere.
  Merges merges;
  std::vector<std::int32_t> parts{'a', 'b', 'c'};
  while (merges.size() < 60) {
    const std::int32_t left = parts[random() % parts.size()];
    const std::int32_t right = parts[random() % parts.size()];
    bool is_new = true;
    for (const auto& merge : merges)
      is_new = is_new && (merge.left != left || merge.right != right);
    if (!is_new) continue;
    const auto result = static_cast<std::int32_t>(300 + merges.size());
    merges.push_back({left, right, result});
    parts.push_back(result);
  }
  std::shuffle(merges.begin(), merges.end(), random);
  for (std::size_t length = 0; length < 300; ++length) {
    std::string piece;
    for (std::size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random() % 3);
    EXPECT_EQ(encode(merges, piece), encode_by_definition(merges, piece)) << piece;
  }
}

TEST(BytePairEncoder, MergesAMegabyteOfOneByteInTime) {
  Merges merges{{'a', 'a', 300}};
  for (std::int32_t id = 300; id < 310; ++id) merges.push_back({id, id, id + 1});
  const Ids ids = encode(merges, std::string((1 << 20) + 3, 'a'));
  // 310 stands for 2048 bytes.
  ASSERT_EQ(ids.size(), 512u + 2);
  EXPECT_EQ(ids[0], 310);
  EXPECT_EQ(ids[511], 310);
  EXPECT_EQ(ids[512], 300);
  EXPECT_EQ(ids[513], 'a');
}

}  // namespace
}  // namespace clefkit
