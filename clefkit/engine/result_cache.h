#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "clefkit/backend/backend.h"
#include "clefkit/base/float_matrix.h"

namespace clefkit {

// What is known after the first tokens of a record: all that the rest of it needs of them.
struct PrefixState {
  std::unique_ptr<SequenceState> sequence;
  FloatMatrix memory;  // The head's M of these tokens, [tokens, width].

  std::size_t size_bytes() const;
};

// Keeps what earlier requests computed within one budget of bytes: prefix states, and the vision
// features of pictures and clips. The least recently used go first, whichever they are. Not for
// concurrent use; a state that is found is valid until the next insertion.
class ResultCache {
 public:
  explicit ResultCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // The state after exactly these tokens, or nullptr. `media` tells apart records whose pad tokens
  // stand for different pictures; it is empty without media.
  const PrefixState* find_prefix(std::span<const std::int32_t> tokens, std::string_view media);
  // Features [tokens, hidden_size] of the media with this digest, or nullptr.
  std::shared_ptr<const FloatMatrix> find_features(std::string_view digest);

  // Whether something of this size would be kept: ask before making a copy for the cache.
  bool accepts(std::size_t size_bytes) const { return size_bytes <= budget_bytes_; }
  // What is in the cache already stays as it is; what is beyond the budget is dropped.
  void insert_prefix(std::span<const std::int32_t> tokens, std::string_view media,
                     PrefixState state);
  void insert_features(std::string_view digest, std::shared_ptr<const FloatMatrix> features);

  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t entries() const { return entries_.size(); }

 private:
  using Result = std::variant<PrefixState, std::shared_ptr<const FloatMatrix>>;
  struct Entry {
    std::string key;
    Result result;
    std::size_t size_bytes = 0;
  };

  const Result* find(std::string_view key);
  void insert(std::string key, Result result, std::size_t result_bytes);

  std::size_t budget_bytes_;
  std::size_t size_bytes_ = 0;
  std::list<Entry> entries_;  // Most recently used first; few, so a linear search.
};

}  // namespace clefkit
