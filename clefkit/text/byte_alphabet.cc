#include "clefkit/text/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace clefkit {
namespace {

constexpr std::size_t kCharacters = 0x144;
constexpr std::int16_t kNoByte = -1;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<std::int16_t, kCharacters> make_byte_of_character() {
  std::array<std::int16_t, kCharacters> table{};
  for (std::int16_t& entry : table) entry = kNoByte;
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    table[stands_for_itself(byte) ? static_cast<std::size_t>(byte) : next++] =
        static_cast<std::int16_t>(byte);
  }
  return table;
}

constexpr std::array<std::int16_t, kCharacters> kByteOfCharacter = make_byte_of_character();

}  // namespace

bool append_bytes_of_alphabet(std::string_view characters, std::string& bytes) {
  for (std::size_t i = 0; i < characters.size(); ++i) {
    std::size_t character = static_cast<unsigned char>(characters[i]);
    if (character >= 0xE0) return false;  // Three bytes or more: beyond the alphabet.
    if (character >= 0xC0) {
      character = (character & 0x1F) << 6 | (static_cast<unsigned char>(characters[++i]) & 0x3F);
    }
    if (character >= kCharacters || kByteOfCharacter[character] == kNoByte) return false;
    bytes += static_cast<char>(kByteOfCharacter[character]);
  }
  return true;
}

}  // namespace clefkit
