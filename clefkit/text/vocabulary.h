#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit {

// The tokens' bytes by id, and ids by bytes. One buffer and one flat hash table, because a
// quarter of a million tokens are filled in at every start.
class Vocabulary {
 public:
  enum class Lookup { kByBytes, kByIdOnly };

  explicit Vocabulary(std::size_t tokens);

  // Adds the token of the next id, which is size(). At most as many as the constructor was told.
  // kByIdOnly keeps added tokens out of find(): they are no parts that merges make.
  void add(std::string_view bytes, Lookup lookup);

  std::size_t size() const { return ends_.size(); }
  std::string_view bytes(std::int32_t id) const {
    const std::size_t begin = id == 0 ? 0 : ends_[static_cast<std::size_t>(id) - 1];
    return std::string_view(buffer_).substr(begin, ends_[static_cast<std::size_t>(id)] - begin);
  }
  std::optional<std::int32_t> find(std::string_view bytes) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = -1;
  };

  std::string buffer_;
  std::vector<std::uint32_t> ends_;
  std::vector<Slot> slots_;  // A power of two, at most half full; linear probing.
};

}  // namespace clefkit
