#pragma once

#include "clefkit/base/error.h"

namespace clefkit {

// For tests: what a call throws.
template <typename Function>
Error error_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "", "no error"};
}

}  // namespace clefkit
