#pragma once

#include <string>

#include "clefkit/eval/drift.h"

namespace clefkit::cli {

// A line on how many chosen answers agree and how far probabilities moved, and one for each answer
// that changed. `margin` as in drift_to_json.
std::string drift_text(const Drift& drift, double margin);

}  // namespace clefkit::cli
