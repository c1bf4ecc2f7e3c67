#include "clefkit/server/model_names.h"

#include <algorithm>
#include <string>

#include "clefkit/base/trimmed.h"

namespace clefkit::server {
namespace {

std::string lower_trimmed(std::string_view text) {
  std::string out(trimmed(text));
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// `@cf/cloudflare/clef-flash:latest` → `clef-flash`
std::string_view without_vendor_and_tag(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash != name.npos) name.remove_prefix(slash + 1);
  return name.substr(0, name.find(':'));
}

}  // namespace

bool is_model_alias(std::string_view asked, std::string_view own) {
  constexpr std::string_view kJev = "jev-";
  const std::string whole = lower_trimmed(asked);
  const std::string own_name = lower_trimmed(own);
  const std::string_view name = without_vendor_and_tag(whole);
  if (name.empty()) return false;
  return whole == own_name || name == own_name || name == "clef" || name == "clef-flash" ||
         (name.starts_with(kJev) && name.size() > kJev.size());
}

}  // namespace clefkit::server
