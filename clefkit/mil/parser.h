#pragma once

#include <string>
#include <string_view>

#include "clefkit/mil/program.h"

namespace clefkit::mil {

// Reads MIL text (ane.md 3.1), in either way of writing scalars. It knows the grammar and the types
// of values, not the operations: that is the checker's part. Throws Error(kCorruptData) with
// `where:line` and what was expected there; also for a number that its type cannot hold: a decimal
// fraction is rounded, a hexadecimal one must be exact.
Program parse_program(std::string_view text, const std::string& where);

}  // namespace clefkit::mil
