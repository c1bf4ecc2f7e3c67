#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace clefkit {

// Bytes (1 to 4) of the valid UTF-8 sequence at the start of `text`; 0 when there is none.
// Overlong forms, surrogates and values above U+10FFFF are not valid.
std::size_t utf8_sequence_length(std::string_view text);

// Offset of the first byte that does not belong to valid UTF-8; text.size() when all do.
std::size_t utf8_valid_prefix(std::string_view text);

// Appends a code point, which is no surrogate and at most U+10FFFF.
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace clefkit
