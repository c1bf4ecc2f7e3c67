#include "clefkit/programs/spellings.h"

#include <algorithm>

namespace clefkit {

std::vector<std::string> names_of(const Spellings& spellings) {
  std::vector<std::string> names;
  for (const SecondSpelling& second : kSecondSpellings) {
    if (spellings.*second.flag) names.emplace_back(second.name);
  }
  return names;
}

std::optional<Spellings> spellings_of(std::span<const std::string> names) {
  Spellings spellings;
  for (const std::string& name : names) {
    const auto* const second = std::ranges::find(kSecondSpellings, name, &SecondSpelling::name);
    if (second == kSecondSpellings.end()) return std::nullopt;
    spellings.*second->flag = true;
  }
  return spellings;
}

}  // namespace clefkit
