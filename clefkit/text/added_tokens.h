#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit {

struct AddedToken {
  std::int32_t id = 0;
  std::string text;
};

// The tokens that are found in raw text, before anything else looks at it: `<|im_end|>` in what a
// user wrote is that token.
class AddedTokens {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t id = 0;
  };

  // Texts are distinct and not empty.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The leftmost match at or after `from`, and of those the longest.
  std::optional<Match> find(std::string_view text, std::size_t from) const;
  std::optional<std::int32_t> id_of(std::string_view token_text) const;

 private:
  std::vector<AddedToken> tokens_;  // Sorted by text.
  std::string first_bytes_;
};

}  // namespace clefkit
