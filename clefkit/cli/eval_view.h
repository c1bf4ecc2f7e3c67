#pragma once

#include <string>

#include "clefkit/eval/evaluation.h"

namespace clefkit::cli {

// An evaluation for a person: its figures as tables, agreement and drift in words. `margin` as in
// drift_to_json.
std::string eval_view(const Evaluation& evaluation, double margin);

}  // namespace clefkit::cli
