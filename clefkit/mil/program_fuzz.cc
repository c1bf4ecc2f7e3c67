#include <cstdlib>

#include "clefkit/base/error.h"
#include "clefkit/mil/checker.h"
#include "clefkit/mil/parser.h"
#include "clefkit/mil/printer.h"

// What is read can be checked, and written so that it is read as the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace clefkit::mil;
  try {
    const Program program = parse_program({reinterpret_cast<const char*>(data), size}, "fuzz");
    check_program(program, {});
    const std::string text = to_text(program);
    if (to_text(parse_program(text, "printed")) != text) std::abort();
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kCorruptData) std::abort();
  }
  return 0;
}
