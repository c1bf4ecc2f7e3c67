#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace clefkit {

// Byte-pair encoding of one piece of text: starts from the bytes' tokens and, while any adjacent
// pair has a merge, applies the merge of lowest rank, the leftmost first.
// Time grows as n log n with the length of the piece. Safe for concurrent use.
class BytePairEncoder {
 public:
  // Rank is the place in the list; a pair that stands in it twice has the later rank.
  struct Merge {
    std::int32_t left = 0;
    std::int32_t right = 0;
    std::int32_t result = 0;
  };

  // `byte_tokens` are the ids of the 256 single bytes.
  BytePairEncoder(const std::array<std::int32_t, 256>& byte_tokens, std::span<const Merge> merges);

  // Appends the ids of `piece`, which is shorter than 2^31 bytes.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  static constexpr std::uint32_t kNoMerge = 0xFFFFFFFFu;

  // An entry of the hash table from pairs to merges. An empty one has rank kNoMerge.
  struct RankedMerge {
    std::int32_t left = -1;
    std::int32_t right = -1;
    std::uint32_t rank = kNoMerge;
    std::int32_t result = -1;
  };

  struct Queue;

  // The entry of the pair, or an empty one.
  const RankedMerge& find(std::int32_t left, std::int32_t right) const;
  bool may_have(std::uint64_t hash) const {
    return (filter_[hash >> filter_shift_ >> 6] >> (hash >> filter_shift_ & 63) & 1) != 0;
  }
  void encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::array<std::int32_t, 256> byte_tokens_;
  std::vector<RankedMerge> table_;  // A power of two, at most half full; linear probing.
  // A bit for each pair's hash. Most pairs of a text have no merge, and half a megabyte of bits
  // stays in a cache that eight of table do not.
  std::vector<std::uint64_t> filter_;
  int filter_shift_ = 0;
};

}  // namespace clefkit
