#include "clefkit/text/nfc.h"

#include <gtest/gtest.h>

namespace clefkit {
namespace {

TEST(Nfc, LeavesTextWithoutCombiningCharactersAlone) {
  EXPECT_EQ(to_nfc(""), "");
  EXPECT_EQ(to_nfc(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(to_nfc("Grüße, 人力资源 😀"), "Grüße, 人力资源 😀");
}

TEST(Nfc, ComposesAcrossTheBoundaryToPlainText) {
  EXPECT_EQ(to_nfc("cafe\u0301s"), "caf\u00E9s");
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("\u00FC\u0304!"), "\u01D6!");
  EXPECT_EQ(to_nfc(">\u0338"), "\u226F");
  EXPECT_EQ(to_nfc("\u0301e"), "\u0301e");
}

TEST(Nfc, DecomposesSingletonsAndExclusions) {
  EXPECT_EQ(to_nfc("\u212B"), "\u00C5");        // Angstrom sign.
  EXPECT_EQ(to_nfc("\uF900"), "\u8C48");        // Compatibility ideograph.
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C");  // Composition exclusion.
  EXPECT_EQ(to_nfc("\U0001D15E"), "\U0001D157\U0001D165");
  EXPECT_EQ(to_nfc("\uFB01"), "\uFB01");  // Compatibility only: stays.
}

TEST(Nfc, ComposesHangul) {
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(to_nfc("\uD558\u11AB"), "\uD55C");
  EXPECT_EQ(to_nfc("\u1112\u0301\u1161"), "\u1112\u0301\u1161");  // Blocked.
  EXPECT_EQ(to_nfc("\u1107\u1172\u11A7"), "\uBDF0\u11A7");        // No final consonant.
}

TEST(Nfc, OrdersMarksByClassAndKeepsTheOrderWithinOne) {
  EXPECT_EQ(to_nfc("q\u0301\u0323\u0300"), "q\u0323\u0301\u0300");
  EXPECT_EQ(to_nfc("a\u0301\u0323"), "\u1EA1\u0301");
}

TEST(Nfc, DoesNotComposeWhatTheReferenceDoesNotKnow) {
  // A composition since Unicode 13; the composed character stays whole.
  EXPECT_EQ(to_nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(to_nfc("\U00011938"), "\U00011938");
}

TEST(Nfc, DoesNotReorderMarksThatTheReferenceDoesNotKnow) {
  // U+1ABF has class 220 since Unicode 13, so it would move before U+0301; the reference's tables
  // are older. U+1ABD has had its class since Unicode 7.
  EXPECT_EQ(to_nfc("q\u0301\u1ABF"), "q\u0301\u1ABF");
  EXPECT_EQ(to_nfc("q\u0301\u1ABD"), "q\u1ABD\u0301");
  EXPECT_EQ(to_nfc("q\u1ABF\u0301\u0323"), "q\u1ABF\u0323\u0301");
}

TEST(Nfc, SortsHundredThousandsOfMarksWithoutDelay) {
  constexpr std::size_t kPairs = 250'000;
  std::string marks = "q";
  std::string below;
  std::string above;
  for (std::size_t i = 0; i < kPairs; ++i) {
    marks += "\u0301\u0323";
    below += "\u0323";
    above += "\u0301";
  }
  EXPECT_TRUE(to_nfc(marks) == "q" + below + above);
}

}  // namespace
}  // namespace clefkit
