#pragma once

#include <string>

#include "clefkit/mil/program.h"

namespace clefkit::mil {

// The program as MIL text (ane.md 3.1), a statement a line. The same program gives the same bytes.
// From version 1.3 on scalars are written `int32(1)`; before it, as tensors of rank 0. Floats are
// hexadecimal, so that nothing is rounded.
std::string to_text(const Program& program);

}  // namespace clefkit::mil
