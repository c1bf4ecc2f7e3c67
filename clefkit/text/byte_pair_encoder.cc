#include "clefkit/text/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace clefkit {
namespace {

// Longer pieces use a queue. Below about 100 bytes a scan for the lowest rank costs no more and
// needs no memory (measured on English and Chinese with the release's vocabulary).
constexpr std::size_t kShortPiece = 64;

// Fibonacci hashing: the product's high half depends on all bits of both ids.
std::uint64_t hash_of(std::int32_t left, std::int32_t right) {
  const std::uint64_t pair = static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
                             static_cast<std::uint32_t>(right);
  return pair * 0x9E3779B97F4A7C15u;
}

}  // namespace

BytePairEncoder::BytePairEncoder(const std::array<std::int32_t, 256>& byte_tokens,
                                 std::span<const Merge> merges)
    : byte_tokens_(byte_tokens), table_(std::bit_ceil(2 * merges.size() + 2)) {
  const std::size_t filter_bits = std::max<std::size_t>(8 * table_.size(), 64);
  filter_.resize(filter_bits / 64);
  filter_shift_ = std::countl_zero(filter_bits) + 1;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const std::uint64_t hash = hash_of(merge.left, merge.right);
    filter_[hash >> filter_shift_ >> 6] |= std::uint64_t{1} << (hash >> filter_shift_ & 63);
    std::size_t at = hash >> 32 & (table_.size() - 1);
    while (table_[at].rank != kNoMerge &&
           (table_[at].left != merge.left || table_[at].right != merge.right)) {
      at = (at + 1) & (table_.size() - 1);
    }
    table_[at] = {merge.left, merge.right, static_cast<std::uint32_t>(rank), merge.result};
  }
}

const BytePairEncoder::RankedMerge& BytePairEncoder::find(std::int32_t left,
                                                          std::int32_t right) const {
  static constexpr RankedMerge kNone;
  const std::uint64_t hash = hash_of(left, right);
  if (!may_have(hash)) return kNone;
  std::size_t at = hash >> 32 & (table_.size() - 1);
  while (table_[at].rank != kNoMerge && (table_[at].left != left || table_[at].right != right)) {
    at = (at + 1) & (table_.size() - 1);
  }
  return table_[at];
}

void BytePairEncoder::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  assert(piece.size() < std::size_t{1} << 31);
  if (piece.size() <= kShortPiece) {
    encode_short(piece, ids);
  } else {
    encode_long(piece, ids);
  }
}

void BytePairEncoder::encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kShortPiece> parts;
  std::array<std::uint32_t, kShortPiece> ranks;  // Of the pair that starts at each part.
  std::array<std::int32_t, kShortPiece> results;
  std::size_t count = piece.size();
  for (std::size_t i = 0; i < count; ++i) {
    parts[i] = byte_tokens_[static_cast<unsigned char>(piece[i])];
  }
  const auto rank_pair = [&](std::size_t i) {
    const RankedMerge& merge = find(parts[i], parts[i + 1]);
    ranks[i] = merge.rank;
    results[i] = merge.result;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) rank_pair(i);

  while (count > 1) {
    const auto pairs_end = ranks.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    const auto lowest = std::min_element(ranks.begin(), pairs_end);
    if (*lowest == kNoMerge) break;
    const auto i = static_cast<std::size_t>(lowest - ranks.begin());
    parts[i] = results[i];
    --count;
    for (std::size_t k = i + 1; k < count; ++k) {
      parts[k] = parts[k + 1];
      ranks[k] = ranks[k + 1];
      results[k] = results[k + 1];
    }
    if (i + 1 < count) rank_pair(i);
    if (i > 0) rank_pair(i - 1);
  }
  ids.insert(ids.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
}

// Parts as a linked list and candidate merges in a heap. A candidate whose parts have changed
// since it was queued is recognised when it comes up.
struct BytePairEncoder::Queue {
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t position;
    std::int32_t left;
    std::int32_t right;
    // std::push_heap keeps the greatest first: greater is lower rank, then further left.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  struct Part {
    std::int32_t id;
    std::uint32_t previous;
    std::uint32_t next;
  };

  std::vector<Part> parts;
  std::vector<Candidate> heap;
};

void BytePairEncoder::encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  constexpr std::int32_t kMergedAway = -1;
  const auto count = static_cast<std::uint32_t>(piece.size());
  Queue queue;
  queue.parts.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    queue.parts[i] = {.id = byte_tokens_[static_cast<unsigned char>(piece[i])],
                      .previous = i == 0 ? kNone : i - 1,
                      .next = i + 1 == count ? kNone : i + 1};
  }
  const auto add_candidate = [&](std::uint32_t position) {
    const std::int32_t left = queue.parts[position].id;
    const std::int32_t right = queue.parts[queue.parts[position].next].id;
    const RankedMerge& merge = find(left, right);
    if (merge.rank == kNoMerge) return false;
    queue.heap.push_back({merge.rank, position, left, right});
    return true;
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) add_candidate(i);
  std::make_heap(queue.heap.begin(), queue.heap.end());

  while (!queue.heap.empty()) {
    const Queue::Candidate best = queue.heap.front();
    std::pop_heap(queue.heap.begin(), queue.heap.end());
    queue.heap.pop_back();
    Queue::Part& part = queue.parts[best.position];
    if (part.id != best.left || part.next == kNone || queue.parts[part.next].id != best.right) {
      continue;
    }
    Queue::Part& eaten = queue.parts[part.next];
    part.id = find(best.left, best.right).result;
    part.next = eaten.next;
    eaten.id = kMergedAway;
    if (part.next != kNone) {
      queue.parts[part.next].previous = best.position;
      if (add_candidate(best.position)) std::push_heap(queue.heap.begin(), queue.heap.end());
    }
    if (part.previous != kNone && add_candidate(part.previous)) {
      std::push_heap(queue.heap.begin(), queue.heap.end());
    }
  }
  for (std::uint32_t i = 0; i != kNone; i = queue.parts[i].next) ids.push_back(queue.parts[i].id);
}

}  // namespace clefkit
