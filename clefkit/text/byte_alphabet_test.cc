#include "clefkit/text/byte_alphabet.h"

#include <gtest/gtest.h>

namespace clefkit {
namespace {

std::string bytes_of(std::string_view characters) {
  std::string bytes;
  EXPECT_TRUE(append_bytes_of_alphabet(characters, bytes)) << characters;
  return bytes;
}

TEST(ByteAlphabet, MapsVisibleCharactersToThemselves) {
  EXPECT_EQ(bytes_of("!aZ~"), "!aZ~");
  EXPECT_EQ(bytes_of("¡¬®ÿ"), "\xA1\xAC\xAE\xFF");
}

TEST(ByteAlphabet, MapsTheOtherBytesFromU0100Up) {
  EXPECT_EQ(bytes_of("Ā"), std::string(1, '\0'));
  EXPECT_EQ(bytes_of("Ċ"), "\n");
  EXPECT_EQ(bytes_of("Ġ"), " ");
  EXPECT_EQ(bytes_of("ġĢłŃ"), "\x7F\x80\xA0\xAD");
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  for (const char* text : {" ", "\n", "\x7F", "\u00A0", "\u00AD", "\u0144", "\u0800", "😀"}) {
    std::string bytes;
    EXPECT_FALSE(append_bytes_of_alphabet(std::string("a") + text, bytes)) << text;
    EXPECT_EQ(bytes, "a");
  }
}

}  // namespace
}  // namespace clefkit
