#pragma once

#include <cstdint>
#include <string>

#include "clefkit/eval/drift.h"

namespace clefkit::cli {

// A line on how many chosen answers agree and how far probabilities moved, and one for each answer
// that changed, of the first `shown`. `margin` as in drift_to_json.
std::string drift_text(const Drift& drift, double margin, std::size_t shown = SIZE_MAX);

}  // namespace clefkit::cli
