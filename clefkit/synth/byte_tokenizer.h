#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clefkit {

inline constexpr std::size_t kByteTokens = 256;
inline constexpr std::size_t kAddedTokens = 33;

// Place of one of the release's added tokens among them, in the order of their ids: 0 for
// `<|endoftext|>`. The content must be one of theirs.
std::size_t added_token_index(std::string_view content);

// A tokenizer.json of the release's pipeline that has no merges: ids 0 to 255 are the bytes, the
// added tokens begin at `first_added` (at least 256), and names that no text can reach fill the
// ids between, since readers of the format want them without gaps.
std::string byte_tokenizer_json(std::size_t first_added);

}  // namespace clefkit
