#include "clefkit/cli/command.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace clefkit::cli {
namespace {

std::atomic<int> interrupt_scopes = 0;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  // A second Ctrl-C does not wait for the clean-up.
  if (interrupt_scopes.load() == 0 || interrupt_token().is_cancelled()) ::_exit(kInterrupted);
  interrupt_token().cancel();
}

CancelToken the_token;

}  // namespace

CancelToken& interrupt_token() { return the_token; }

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

InterruptScope::InterruptScope() { interrupt_scopes.fetch_add(1); }
InterruptScope::~InterruptScope() { interrupt_scopes.fetch_sub(1); }

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kTooLarge:
      return kBadRequest;
    case ErrorCode::kNotFound:
    case ErrorCode::kCorruptData:
      return kBadModel;
    case ErrorCode::kUnsupported:
    case ErrorCode::kUnavailable:
    case ErrorCode::kOverflow:
      return kNotAvailable;
    case ErrorCode::kCancelled:
      return kInterrupted;
    case ErrorCode::kInternal:
      break;
  }
  return kDefect;
}

}  // namespace clefkit::cli
