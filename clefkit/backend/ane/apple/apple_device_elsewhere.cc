#include "clefkit/backend/ane/apple/apple_device.h"

namespace clefkit::ane {
namespace {

constexpr char kProblem[] = "this is not a Mac";

}  // namespace

AppleFacts apple_facts(const AppleOptions&) { return {.problem = kProblem}; }

std::unique_ptr<Device> open_apple_device(const AppleOptions&) {
  throw Error(ErrorCode::kUnavailable, "ane", kProblem);
}

void compile_in_this_process(const ProgramSource& source, const AppleOptions&) {
  throw Error(ErrorCode::kUnavailable, source.name, kProblem);
}

}  // namespace clefkit::ane
