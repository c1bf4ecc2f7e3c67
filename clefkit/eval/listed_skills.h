#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace clefkit {

// The skills that a model claims to have: `skills.json` in its directory, an array of names. Absent
// when there is no such file: then it claims to have all. Throws Error(kCorruptData).
std::optional<std::set<std::string>> listed_skills(const std::filesystem::path& model);

}  // namespace clefkit
