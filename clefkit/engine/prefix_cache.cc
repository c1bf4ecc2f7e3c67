#include "clefkit/engine/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace clefkit {

std::size_t PrefixState::size_bytes() const {
  return sequence->size_bytes() + memory.values().size_bytes();
}

const PrefixState* PrefixCache::find(std::span<const std::int32_t> tokens) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return std::ranges::equal(entry.tokens, tokens); });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return &entries_.front().state;
}

void PrefixCache::insert(std::span<const std::int32_t> tokens, PrefixState state) {
  const std::size_t bytes = state.size_bytes() + tokens.size_bytes();
  if (bytes > budget_bytes_) return;
  while (size_bytes_ + bytes > budget_bytes_) {
    size_bytes_ -= entries_.back().size_bytes;
    entries_.pop_back();
  }
  entries_.push_front({{tokens.begin(), tokens.end()}, std::move(state), bytes});
  size_bytes_ += bytes;
}

}  // namespace clefkit
