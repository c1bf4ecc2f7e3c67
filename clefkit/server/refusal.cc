#include "clefkit/server/refusal.h"

namespace clefkit::server {

Refusal refusal_of(const Error& error) {
  using Kind = Refusal::Kind;
  const auto as = [&](Kind kind) { return Refusal(kind, error.where(), error.message()); };
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return as(Kind::kInvalid);
    case ErrorCode::kTooLarge:
      return as(Kind::kTooManyTokens);
    case ErrorCode::kUnsupported:
      return as(Kind::kUnsupported);
    case ErrorCode::kCancelled:
      return as(Kind::kDeadline);
    case ErrorCode::kNotFound:
    case ErrorCode::kCorruptData:
    case ErrorCode::kUnavailable:
    case ErrorCode::kOverflow:
    case ErrorCode::kInternal:
      break;
  }
  return as(Kind::kInternal);
}

int http_status(Refusal::Kind kind) {
  using Kind = Refusal::Kind;
  switch (kind) {
    case Kind::kNotJson:
    case Kind::kUnknownModel:
    case Kind::kUnusedAsset:
      return 400;
    case Kind::kUnauthorized:
      return 401;
    case Kind::kForbidden:
      return 403;
    case Kind::kNotFound:
      return 404;
    case Kind::kMethodNotAllowed:
      return 405;
    case Kind::kTooManyTokens:
    case Kind::kBodyTooLarge:
      return 413;
    case Kind::kMediaType:
      return 415;
    case Kind::kInvalid:
    case Kind::kUnsupported:
      return 422;
    case Kind::kBusy:
      return 429;
    case Kind::kStopping:
      return 503;
    case Kind::kDeadline:
      return 504;
    case Kind::kInternal:
      break;
  }
  return 500;
}

}  // namespace clefkit::server
