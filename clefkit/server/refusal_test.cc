#include "clefkit/server/refusal.h"

#include <gtest/gtest.h>

namespace clefkit::server {
namespace {

using Kind = Refusal::Kind;

TEST(Refusal, TellsTheClientsErrorsFromOurs) {
  const auto kind_of = [](ErrorCode code) { return refusal_of(Error(code, "w", "m")).kind; };
  EXPECT_EQ(kind_of(ErrorCode::kInvalidArgument), Kind::kInvalid);
  EXPECT_EQ(kind_of(ErrorCode::kTooLarge), Kind::kTooManyTokens);
  EXPECT_EQ(kind_of(ErrorCode::kUnsupported), Kind::kUnsupported);
  EXPECT_EQ(kind_of(ErrorCode::kCancelled), Kind::kDeadline);
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kCorruptData,
                               ErrorCode::kUnavailable, ErrorCode::kInternal}) {
    EXPECT_EQ(kind_of(code), Kind::kInternal);
  }
}

TEST(Refusal, KeepsPlaceAndText) {
  const Refusal refusal =
      refusal_of(Error(ErrorCode::kInvalidArgument, "images[0]", "4 bytes, expected a picture"));
  EXPECT_EQ(refusal.where, "images[0]");
  EXPECT_STREQ(refusal.what(), "4 bytes, expected a picture");
  EXPECT_EQ(refusal.message(), "images[0]: 4 bytes, expected a picture");
}

TEST(Refusal, BlamesTheServerForItsOwnFaultsOnly) {
  for (const Kind kind :
       {Kind::kNotJson, Kind::kInvalid, Kind::kUnknownModel, Kind::kTooManyTokens,
        Kind::kBodyTooLarge, Kind::kUnauthorized, Kind::kForbidden, Kind::kNotFound,
        Kind::kMethodNotAllowed, Kind::kUnsupported, Kind::kBusy}) {
    EXPECT_GE(http_status(kind), 400);
    EXPECT_LT(http_status(kind), 500);
  }
  for (const Kind kind : {Kind::kStopping, Kind::kDeadline, Kind::kInternal}) {
    EXPECT_GE(http_status(kind), 500);
  }
}

}  // namespace
}  // namespace clefkit::server
