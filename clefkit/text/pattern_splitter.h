#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit {

class CancelToken;

// Splits text into the pieces that byte-pair encoding works on: the matches of a regular
// expression, and whatever lies between them (`Split` with behaviour `Isolated`).
//
// The pattern means what it means to the reference (Oniguruma with Unicode 16), whatever Unicode
// version the installed PCRE2 has: `\s` is White_Space, and `\p{L}`, `\p{M}`, `\p{N}` are completed
// with the characters of Unicode 15 and 16. Safe for concurrent use.
class PatternSplitter {
 public:
  // Throws Error with `where`: kCorruptData when `pattern` is no regular expression, kUnsupported
  // when it uses syntax that the two libraries read differently.
  PatternSplitter(std::string_view pattern, std::string where);
  ~PatternSplitter();
  PatternSplitter(PatternSplitter&&) noexcept;
  PatternSplitter& operator=(PatternSplitter&&) noexcept;

  // The end offset of each piece of valid UTF-8, in order: the pieces are adjacent, none is empty
  // and the last ends with the text. Throws Error(kUnsupported) when matching takes too many steps,
  // and Error(kCancelled).
  std::vector<std::size_t> piece_ends(std::string_view text,
                                      const CancelToken* cancel = nullptr) const;

 private:
  struct Code;
  std::unique_ptr<const Code> code_;
  std::string where_;
};

}  // namespace clefkit
