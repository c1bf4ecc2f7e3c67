#include "clefkit/text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace clefkit {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  for (const AddedToken& token : tokens_) {
    if (first_bytes_.empty() || first_bytes_.back() != token.text[0]) {
      first_bytes_ += token.text[0];
    }
  }
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = text.find_first_of(first_bytes_, from); begin != text.npos;
       begin = text.find_first_of(first_bytes_, begin + 1)) {
    // Narrows the sorted list to the tokens that share ever more bytes with the text; the first
    // of them is then the one that ends here, if one does.
    std::optional<Match> longest;
    auto first = tokens_.begin();
    auto last = tokens_.end();
    for (std::size_t length = 0; first != last; ++length) {
      if (first->text.size() == length) longest = {begin, begin + length, (first++)->id};
      if (begin + length == text.size()) break;
      const auto byte = static_cast<unsigned char>(text[begin + length]);
      const auto byte_of = [length](const AddedToken& token) {
        return static_cast<unsigned char>(token.text[length]);
      };
      first = std::partition_point(first, last,
                                   [&](const AddedToken& token) { return byte_of(token) < byte; });
      last = std::partition_point(first, last,
                                  [&](const AddedToken& token) { return byte_of(token) == byte; });
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view token_text) const {
  const auto token = std::lower_bound(
      tokens_.begin(), tokens_.end(), token_text,
      [](const AddedToken& entry, std::string_view text) { return entry.text < text; });
  if (token == tokens_.end() || token->text != token_text) return std::nullopt;
  return token->id;
}

}  // namespace clefkit
