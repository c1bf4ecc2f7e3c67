#include "clefkit/base/companion_program.h"

#include <cstdint>
#include <cstdlib>

#include "clefkit/base/error.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace clefkit {
namespace {

namespace fs = std::filesystem;

fs::path directory_of_this_program() {
#ifdef __APPLE__
  std::string path(4096, '\0');
  auto size = static_cast<std::uint32_t>(path.size());
  if (_NSGetExecutablePath(path.data(), &size) != 0) return {};
  return fs::path(path.c_str()).parent_path();
#else
  std::error_code unreadable;
  return fs::read_symlink("/proc/self/exe", unreadable).parent_path();
#endif
}

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
