#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace clefkit {

// What went wrong, in the terms a caller can act on. The command line turns these into exit codes
// and the server into HTTP statuses, in one place each.
enum class ErrorCode {
  kInvalidArgument,  // The request or a flag is wrong.
  kTooLarge,         // The request is well formed, but longer than the model or its limits allow.
  kNotFound,         // A file or a name that the model should have is absent.
  kCorruptData,      // A model file does not hold what its format or the architecture says.
  kUnsupported,      // Understood, but not available in this build or on this machine.
  kUnavailable,      // A resource failed: disk full, out of memory, a device gone.
  kOverflow,         // A result left the range of the numbers it is computed in.
  kCancelled,        // The caller asked to stop.
  kInternal,         // A defect of ours.
};

// The name used in JSON error bodies, e.g. "invalid_argument".
std::string_view to_string(ErrorCode code);

// The one exception type. `where` names the place (`layers.7.mlp.up_proj`, `questions.q.type`,
// `model.safetensors`), `message` what was found and what was expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string where, const std::string& message)
      : std::runtime_error(where.empty() ? message : where + ": " + message),
        code_(code),
        where_(std::move(where)),
        message_(message) {}

  ErrorCode code() const { return code_; }
  const std::string& where() const { return where_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string where_;
  std::string message_;
};

// throw_error(code, where, "found {}, expected {}", a, b)
template <typename... Args>
[[noreturn]] void throw_error(ErrorCode code, std::string where, fmt::format_string<Args...> format,
                              Args&&... args) {
  throw Error(code, std::move(where), fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace clefkit
