#include "clefkit/text/pattern_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/utf8.h"
#include "clefkit/text/pattern_dialect.h"

namespace clefkit {
namespace {

constexpr std::size_t kMaxPatternBytes = 64 << 10;
// Steps the matcher may take for one match: generous for a pattern that looks at each character a
// few times, out of reach of one that backtracks without end.
constexpr std::size_t kLeastMatchSteps = 10'000'000;
constexpr std::size_t kMatchStepsPerByte = 16;

template <auto free_function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using CodePointer = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchDataPointer = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContextPointer = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;

template <typename Pointer>
Pointer not_null(typename Pointer::pointer object) {
  if (object == nullptr) throw std::bad_alloc();
  return Pointer(object);
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct PatternSplitter::Code {
  CodePointer compiled;
};

PatternSplitter::PatternSplitter(std::string_view pattern, std::string where)
    : where_(std::move(where)) {
  if (pattern.size() > kMaxPatternBytes) {
    throw_error(ErrorCode::kCorruptData, where_, "a pattern of {} bytes, expected at most {}",
                pattern.size(), kMaxPatternBytes);
  }
  const std::string rewritten = to_pcre2_pattern(pattern, where_);
  // MULTILINE because `^` and `$` are so in Oniguruma; without \C no match ends inside a character.
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto compiled = CodePointer(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()),
                                            rewritten.size(), kOptions, &error, &offset, nullptr));
  if (compiled == nullptr) {
    throw_error(ErrorCode::kCorruptData, where_, "not a regular expression: {}", message_of(error));
  }
  // Where just-in-time compilation is forbidden, pcre2_match() interprets: slower, same result.
  pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);
  code_ = std::make_unique<const Code>(Code{std::move(compiled)});
}

PatternSplitter::~PatternSplitter() = default;
PatternSplitter::PatternSplitter(PatternSplitter&&) noexcept = default;
PatternSplitter& PatternSplitter::operator=(PatternSplitter&&) noexcept = default;

std::vector<std::size_t> PatternSplitter::piece_ends(std::string_view text,
                                                     const CancelToken* cancel) const {
  const pcre2_code* code = code_->compiled.get();
  const auto match = not_null<MatchDataPointer>(pcre2_match_data_create(1, nullptr));
  const auto context = not_null<MatchContextPointer>(pcre2_match_context_create(nullptr));
  const std::size_t steps = std::max(kLeastMatchSteps, kMatchStepsPerByte * text.size());
  pcre2_set_match_limit(context.get(),
                        static_cast<std::uint32_t>(std::min<std::size_t>(steps, UINT32_MAX)));

  std::vector<std::size_t> ends;
  ends.reserve(text.size() / 4);
  std::size_t last_end = 0;
  const auto end_piece = [&](std::size_t end) {
    if (end > last_end) ends.push_back(last_end = end);
  };
  std::size_t at = 0;
  while (at < text.size()) {
    if (cancel != nullptr) cancel->throw_if_cancelled();
    // The text is valid UTF-8; checking it anew from `at` for each match would be quadratic.
    const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                   PCRE2_NO_UTF_CHECK, match.get(), context.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
    if (result < 0 || span[0] < at || span[1] < span[0]) {
      throw_error(ErrorCode::kUnsupported, where_,
                  "the pattern cannot split the text at byte {}: {}", at,
                  result < 0 ? message_of(result) : "a match that ends before it starts");
    }
    end_piece(span[0]);
    end_piece(span[1]);
    // An empty match ends the piece before it and the search goes on behind the next character.
    at = span[1] > span[0] ? span[1] : span[1] + utf8_sequence_length(text.substr(span[1]));
  }
  end_piece(text.size());
  return ends;
}

}  // namespace clefkit
