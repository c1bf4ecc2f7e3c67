#include "clefkit/eval/listed_skills.h"

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {
namespace {

constexpr std::uint64_t kLimitBytes = 1 << 20;

}  // namespace

std::optional<std::set<std::string>> listed_skills(const std::filesystem::path& model) {
  const std::filesystem::path path = model / kSkillsFile;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Json json = parse_json(read_file(path, kLimitBytes), path.string(), {});
  if (!json.is_array()) {
    throw_error(ErrorCode::kCorruptData, path.string(), "{}, expected an array of skills",
                json.kind_name());
  }
  std::set<std::string> skills;
  for (const Json& skill : json.items()) {
    if (!skill.is_string()) {
      throw_error(ErrorCode::kCorruptData, path.string(), "{}, expected the names of skills",
                  skill.kind_name());
    }
    skills.insert(skill.string());
  }
  return skills;
}

}  // namespace clefkit
