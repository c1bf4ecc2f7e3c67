#include "clefkit/http/message.h"

#include <gtest/gtest.h>

namespace clefkit::http {
namespace {

TEST(PercentDecode, DecodesHexPairs) {
  EXPECT_EQ(percent_decode("/run/@cf%2Fcloudflare%2fclef"), "/run/@cf/cloudflare/clef");
  EXPECT_EQ(percent_decode("%41%e2%82%ac"), "A\u20ac");
  EXPECT_EQ(percent_decode(""), "");
}

TEST(PercentDecode, RefusesHalfAPairAndNul) {
  for (const char* text : {"%", "%4", "a%", "%4g", "%g4", "%00", "%%41"}) {
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
  }
}

TEST(FindHeader, IgnoresCaseAndTakesTheFirst) {
  const Headers headers{{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(find_header(headers, "CONTENT-TYPE"), "a");
  EXPECT_EQ(find_header(headers, "content"), std::nullopt);
}

}  // namespace
}  // namespace clefkit::http
