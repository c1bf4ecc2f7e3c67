#pragma once

#include <string>
#include <string_view>

namespace clefkit {

// GPT-2's alphabet: tokenizer.json writes each byte as one visible character. Printable ASCII and
// most of Latin-1 stand for themselves, the other 68 bytes for U+0100 to U+0143 in rising order.

// Appends the bytes that `characters` (valid UTF-8) stand for. False when a character is not of
// the alphabet; `bytes` then holds those before it.
bool append_bytes_of_alphabet(std::string_view characters, std::string& bytes);

}  // namespace clefkit
