#pragma once

#include <string>

namespace clefkit {

// The instruction set that kernels use on this processor, as Highway calls it: "AVX2", "AVX3_DL".
std::string instruction_set();

}  // namespace clefkit
