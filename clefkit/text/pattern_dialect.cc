#include "clefkit/text/pattern_dialect.h"

#include <array>
#include <cstddef>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

// What an escape becomes inside a character class; outside it gets brackets.
struct ClassEscape {
  std::string_view escape;
  std::string_view members;
};

// The additions were listed by asking both libraries about every code point: PCRE2 10.42 knows
// Unicode 14. A later PCRE2 just hears of them twice.
constexpr std::array<ClassEscape, 5> kClassEscapes{{
    {R"(\s)",
     R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f})"
     R"(\x{3000})"},
    {R"(\S)",
     R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
     R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})"},
    {R"(\p{L})", R"(\p{L}\x{1c89}-\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3})"
                 R"(\x{10d4a}-\x{10d65}\x{10d6f}-\x{10d85}\x{10ec2}-\x{10ec4}\x{1123f}-\x{11240})"
                 R"(\x{11380}-\x{11389}\x{1138b}\x{1138e}\x{11390}-\x{113b5}\x{113b7}\x{113d1})"
                 R"(\x{113d3}\x{11bc0}-\x{11be0}\x{11f02}\x{11f04}-\x{11f10}\x{11f12}-\x{11f33})"
                 R"(\x{1342f}\x{13441}-\x{13446}\x{13460}-\x{143fa}\x{16100}-\x{1611d})"
                 R"(\x{16d40}-\x{16d6c}\x{18cff}\x{1b132}\x{1b155}\x{1df25}-\x{1df2a})"
                 R"(\x{1e030}-\x{1e06d}\x{1e4d0}-\x{1e4eb}\x{1e5d0}-\x{1e5ed}\x{1e5f0}\x{2b739})"
                 R"(\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})"},
    {R"(\p{M})", R"(\p{M}\x{897}\x{cf3}\x{ece}\x{10d69}-\x{10d6d}\x{10efc}-\x{10eff}\x{11241})"
                 R"(\x{113b8}-\x{113c0}\x{113c2}\x{113c5}\x{113c7}-\x{113ca}\x{113cc}-\x{113d0})"
                 R"(\x{113d2}\x{113e1}-\x{113e2}\x{11f00}-\x{11f01}\x{11f03}\x{11f34}-\x{11f3a})"
                 R"(\x{11f3e}-\x{11f42}\x{11f5a}\x{13440}\x{13447}-\x{13455}\x{1611e}-\x{1612f})"
                 R"(\x{1e08f}\x{1e4ec}-\x{1e4ef}\x{1e5ee}-\x{1e5ef})"},
    {R"(\p{N})",
     R"(\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11f50}-\x{11f59})"
     R"(\x{16130}-\x{16139}\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1d2c0}-\x{1d2d3})"
     R"(\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa})"},
}};

class Rewriter {
 public:
  Rewriter(std::string_view pattern, const std::string& where) : rest_(pattern), where_(where) {}

  std::string rewrite() {
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        rewrite_escape();
      } else if (in_class_) {
        rewrite_in_class();
      } else if (rest_[0] == '[') {
        in_class_ = true;
        // A `]` that comes first stands for itself.
        take(rest_.starts_with("[^]")                             ? 3
             : rest_.starts_with("[]") || rest_.starts_with("[^") ? 2
                                                                  : 1);
      } else {
        take(1);
      }
    }
    return std::move(out_);
  }

 private:
  void take(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void refuse(std::string_view syntax) const {
    throw_error(ErrorCode::kUnsupported, where_, "the pattern uses {}, which is not supported",
                syntax);
  }

  void rewrite_escape() {
    for (const ClassEscape& known : kClassEscapes) {
      if (!rest_.starts_with(known.escape)) continue;
      out_ += in_class_ ? "" : "[";
      out_ += known.members;
      out_ += in_class_ ? "" : "]";
      rest_.remove_prefix(known.escape.size());
      return;
    }
    for (const std::string_view syntax : {R"(\h)", R"(\H)", R"(\Q)"}) {
      if (rest_.starts_with(syntax)) refuse(syntax);
    }
    take(2);
  }

  void rewrite_in_class() {
    if (rest_.starts_with("[:")) {
      take(std::min(rest_.find(":]"), rest_.size() - 1) + 2);
      return;
    }
    if (rest_[0] == '[') refuse("a class inside a class");
    if (rest_.starts_with("&&")) refuse("`&&` in a class");
    if (rest_[0] == ']') in_class_ = false;
    take(1);
  }

  std::string_view rest_;
  const std::string& where_;
  std::string out_;
  bool in_class_ = false;
};

}  // namespace

std::string to_pcre2_pattern(std::string_view pattern, const std::string& where) {
  return Rewriter(pattern, where).rewrite();
}

}  // namespace clefkit
