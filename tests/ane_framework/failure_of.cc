#include "failure_of.h"

#include "clefkit/base/error.h"

std::optional<std::string> failure_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const clefkit::Error& error) {
    return error.message();
  }
  return std::nullopt;
}
