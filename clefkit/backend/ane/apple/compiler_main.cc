// clefkit-ane-compiler MODEL.mil WEIGHTS [FRAMEWORK]: compiles one program into the system's cache
// and ends. A process of its own, because after some hundred compilations in one process the
// framework fails without a word (ane.md 2.8). WEIGHTS is empty for a program without weights. Ends
// with 0; else it says why on standard output: with 1 the program is refused, with 2 anything else.
#include <fmt/format.h>

#include <exception>
#include <optional>

#include "clefkit/backend/ane/apple/apple_device.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/mapped_file.h"

int main(int count, char** arguments) {
  using namespace clefkit;
  constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;
  if (count < 3 || count > 4) {
    fmt::print("expected MODEL.mil WEIGHTS [FRAMEWORK], both files where the framework looks\n");
    return 2;
  }
  try {
    ane::AppleOptions options;
    if (count > 3) options.framework = arguments[3];
    std::optional<MappedFile> weights;
    if (*arguments[2] != '\0') weights.emplace(arguments[2]);
    ane::compile_in_this_process({.name = "program",
                                  .mil = read_file(arguments[1], kMaxTextBytes),
                                  .weights = weights ? weights->bytes() : Bytes()},
                                 options);
    return 0;
  } catch (const Error& error) {
    fmt::print("{}\n", error.message());
    return error.code() == ErrorCode::kUnsupported ? 1 : 2;
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
}
