#include "clefkit/base/companion_program.h"

#include <cstdlib>

#include "clefkit/base/error.h"
#include "clefkit/base/program_data.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path find_companion_program(const std::string& name, const char* variable,
                                const fs::path& given) {
  if (!given.empty()) return given;
  if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') return named;
  const fs::path beside = directory_of_this_program() / name;
  const fs::path installed = fs::path(CLEFKIT_INSTALLED_PROGRAMS) / name;
  for (const fs::path& place : {beside, installed}) {
    std::error_code unreadable;
    if (fs::exists(place, unreadable)) return place;
  }
  throw_error(ErrorCode::kUnavailable, name,
              "neither {} nor {} exists, expected the program there or named by {}",
              beside.string(), installed.string(), variable);
}

}  // namespace clefkit
