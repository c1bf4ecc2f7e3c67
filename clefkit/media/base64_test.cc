#include "clefkit/media/base64.h"

#include <gtest/gtest.h>

#include <string>

namespace clefkit {
namespace {

// "invalid" for text that is refused.
std::string decoded(std::string_view text) {
  const auto bytes = decode_base64(text);
  return bytes ? std::string(bytes->begin(), bytes->end()) : "invalid";
}

// RFC 4648, section 10.
TEST(Base64, DecodesTheStandardsExamples) {
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9v"), "foo");
  EXPECT_EQ(decoded("Zm9vYg=="), "foob");
  EXPECT_EQ(decoded("Zm9vYmE="), "fooba");
  EXPECT_EQ(decoded("Zm9vYmFy"), "foobar");
}

TEST(Base64, EncodesTheStandardsExamples) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encode_base64("\xFB\xFF"), "+/8=");
}

TEST(Base64, TakesWhatClientsSend) {
  EXPECT_EQ(decoded("Zm9v\r\nYg=\n=\n"), "foob");
  EXPECT_EQ(decoded("Zm9vYg"), "foob");
  EXPECT_EQ(decoded("-_8"), "\xFB\xFF");
  EXPECT_EQ(decoded("+/8="), "\xFB\xFF");
}

TEST(Base64, RefusesWhatNoEncoderWrites) {
  for (const char* text : {"Z", "Zg=", "Zg===", "Z===", "=",
                           "Zm9v=", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v!", "Zm\xC3\xA9v", "Zm=9"}) {
    EXPECT_EQ(decoded(text), "invalid") << text;
  }
  EXPECT_EQ(decoded(std::string_view("Zm\0v", 4)), "invalid");
}

}  // namespace
}  // namespace clefkit
