#pragma once

#include <string>
#include <string_view>

namespace clefkit {

// Rewrites a pattern written for Oniguruma, the reference's library, so that PCRE2 matches the
// same text with any of its Unicode versions: `\s` and `\S` become White_Space (PCRE2's own hold
// U+180E too), `\p{L}`, `\p{M}` and `\p{N}` gain what Unicode 15 and 16 added.
// Throws Error(kUnsupported) with `where` for what the two read differently and no known
// tokenizer uses: nested classes, `&&` in a class, `\h`, `\H`, `\Q`.
std::string to_pcre2_pattern(std::string_view pattern, const std::string& where);

}  // namespace clefkit
