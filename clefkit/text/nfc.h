#pragma once

#include <string>
#include <string_view>

namespace clefkit {

// Normalization Form C of valid UTF-8, as the reference's normalizer (the Rust tokenizers library)
// gives it: that one knows Unicode 9, so combining marks added since are neither reordered nor
// composed. Time grows as n log n also for text of nothing but combining marks.
std::string to_nfc(std::string_view utf8);

}  // namespace clefkit
