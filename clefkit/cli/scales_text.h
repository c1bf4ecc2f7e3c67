#pragma once

#include <string>

#include "clefkit/model/text_scales.h"

namespace clefkit::cli {

// In a few words: "MLP inputs of 30 layers x16, 2 layers x4, measured on 441 tokens".
std::string scales_text(const TextScales& scales);

}  // namespace clefkit::cli
