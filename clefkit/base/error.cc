#include "clefkit/base/error.h"

namespace clefkit {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kTooLarge:
      return "too_large";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kCorruptData:
      return "corrupt_data";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kOverflow:
      return "overflow";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      break;
  }
  return "internal";
}

}  // namespace clefkit
