#pragma once

#include <string>
#include <string_view>

#include "clefkit/eval/data_set.h"
#include "clefkit/eval/drift.h"

namespace clefkit {

// Answers that somebody wrote down, for comparing with where their model is not at hand: one object
// a line, {"name": of a request of the set, "answers": as in the body of a System One response}.
// Every request must have a name of its own and be answered once, with the set's questions and
// options in any order. Throws Error(kInvalidArgument) with the line and the member's place;
// `source` names the file.
Probabilities parse_recorded_answers(std::string_view text, const std::string& source,
                                     const DataSet& set);

}  // namespace clefkit
