#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/engine/float_matrix.h"

namespace clefkit {

// What is known after the first tokens of a record: all that the rest of it needs of them.
struct PrefixState {
  std::unique_ptr<SequenceState> sequence;
  FloatMatrix memory;  // The head's M of these tokens, [tokens, width].

  std::size_t size_bytes() const;
};

// Keeps prefix states by their token ids within a budget of bytes; the least recently used go
// first. Not for concurrent use.
class PrefixCache {
 public:
  explicit PrefixCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // The state after exactly these tokens, or nullptr; valid until the next insert().
  const PrefixState* find(std::span<const std::int32_t> tokens);

  // Whether a state of this size would be kept: ask before making a copy for the cache.
  bool accepts(std::size_t size_bytes) const { return size_bytes <= budget_bytes_; }
  // The tokens are not in the cache. A state beyond the budget is dropped.
  void insert(std::span<const std::int32_t> tokens, PrefixState state);

  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t entries() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<std::int32_t> tokens;
    PrefixState state;
    std::size_t size_bytes = 0;
  };

  std::size_t budget_bytes_;
  std::size_t size_bytes_ = 0;
  std::list<Entry> entries_;  // Most recently used first; few, so a linear search.
};

}  // namespace clefkit
