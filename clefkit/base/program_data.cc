#include "clefkit/base/program_data.h"

#include <cstdint>
#include <string>
#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace clefkit {
namespace {

namespace fs = std::filesystem;

}  // namespace

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

std::optional<fs::path> find_program_data(const fs::path& relative) {
  const fs::path programs = directory_of_this_program();
  for (const fs::path& data : {programs / "share", programs / CLEFKIT_DATA_FROM_PROGRAMS,
                               fs::path(CLEFKIT_INSTALLED_DATA)}) {
    const fs::path place = (data / "clefkit" / relative).lexically_normal();
    std::error_code unreadable;
    if (fs::exists(place, unreadable)) return place;
  }
  return std::nullopt;
}

}  // namespace clefkit
