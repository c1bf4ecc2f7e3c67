#include "clefkit/text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/utf8.h"

namespace clefkit {
namespace {

// Below it no character changes or joins the one before it.
constexpr std::int32_t kFirstCombining = 0x300;
// In UTF-8, characters below U+0300 start with a smaller byte than the others.
constexpr unsigned char kFirstCombiningLead = 0xCC;

struct Range {
  std::int32_t first;
  std::int32_t last;
};

// What Unicode 10 to 16 added with a combining class, or as the second part of a composition. Up to
// 15 measured against the reference code point by code point, 16 from its UnicodeData.txt.
constexpr std::array<Range, 48> kUnknownToReference{{
    {0x07FD, 0x07FD},   {0x0897, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
    {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x113B8, 0x113B8},
    {0x113BB, 0x113BB}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113C9},
    {0x113CE, 0x113D0}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x1611E, 0x1612F}, {0x16D63, 0x16D63},
    {0x16D67, 0x16D6A}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF},
}};

bool is_unknown_to_reference(std::int32_t code_point) {
  const auto* range =
      std::lower_bound(kUnknownToReference.begin(), kUnknownToReference.end(), code_point,
                       [](const Range& entry, std::int32_t value) { return entry.last < value; });
  return range != kUnknownToReference.end() && range->first <= code_point;
}

// utf8proc joins this vowel to a Hangul syllable as if it were the consonant after it, and loses
// it.
constexpr std::int32_t kHangulBeforeFirstFinal = 0x11A7;

// Nothing before the character can change with it or what follows.
bool starts_segment(std::int32_t code_point) {
  return code_point < kFirstCombining || code_point == kHangulBeforeFirstFinal ||
         is_unknown_to_reference(code_point);
}

int combining_class_of(std::int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

// A stretch of text that normalises on its own. utf8proc decomposes and composes; the reordering
// between is ours, because utf8proc's takes quadratic time on a long run of marks.
class Segment {
 public:
  void add(std::int32_t code_point) {
    std::array<std::int32_t, 8> parts;  // Full canonical decompositions have at most four.
    const auto count = utf8proc_decompose_char(code_point, parts.data(), parts.size(),
                                               UTF8PROC_DECOMPOSE, nullptr);
    if (count < 0 || static_cast<std::size_t>(count) > parts.size()) {
      throw_error(ErrorCode::kInternal, "", "utf8proc cannot decompose U+{:04X}", code_point);
    }
    code_points_.insert(code_points_.end(), parts.begin(), parts.begin() + count);
  }

  void finish(std::string& out) {
    reorder();
    const auto length = utf8proc_normalize_utf32(
        code_points_.data(), static_cast<utf8proc_ssize_t>(code_points_.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    if (length < 0) throw_error(ErrorCode::kInternal, "", "{}", utf8proc_errmsg(length));
    for (utf8proc_ssize_t i = 0; i < length; ++i) {
      append_utf8(out, static_cast<std::uint32_t>(code_points_[static_cast<std::size_t>(i)]));
    }
    code_points_.clear();
  }

 private:
  // Sorts each run of combining marks by class, keeping the order within a class.
  void reorder() {
    const auto by_class = [](std::int32_t a, std::int32_t b) {
      return combining_class_of(a) < combining_class_of(b);
    };
    auto begin = code_points_.begin();
    // A mark the reference does not know counts as a base there; it stands first in its segment.
    if (begin != code_points_.end() && is_unknown_to_reference(*begin)) ++begin;
    while (begin != code_points_.end()) {
      begin = std::find_if(begin, code_points_.end(), combining_class_of);
      const auto end = std::find_if_not(begin, code_points_.end(), combining_class_of);
      if (!std::is_sorted(begin, end, by_class)) std::stable_sort(begin, end, by_class);
      begin = end;
    }
  }

  std::vector<std::int32_t> code_points_;
};

}  // namespace

std::string to_nfc(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  Segment segment;
  const auto starts_combining = [](char byte) {
    return static_cast<unsigned char>(byte) >= kFirstCombiningLead;
  };
  std::size_t at = 0;
  while (at < utf8.size()) {
    // Copy up to the last character before the next one that could combine with it.
    const auto* next = std::find_if(utf8.begin() + at, utf8.end(), starts_combining);
    auto base = static_cast<std::size_t>(next - utf8.begin());
    if (next != utf8.end() && base > at) {
      do {
        --base;
      } while ((utf8[base] & 0xC0) == 0x80);
    }
    out.append(utf8, at, base - at);
    at = base;

    for (std::size_t count = 0; at < utf8.size(); ++count) {
      std::int32_t code_point = 0;
      const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()) + at;
      const auto length =
          utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(utf8.size() - at), &code_point);
      if (count > 0 && starts_segment(code_point)) break;
      segment.add(code_point);
      at += static_cast<std::size_t>(length);
    }
    segment.finish(out);
  }
  return out;
}

}  // namespace clefkit
