#pragma once

#include <string>

#include "clefkit/base/json.h"

namespace clefkit::cli {

// The answers of a response body for a person: one block a question, a bar a probability.
std::string answer_view(const Json& response, bool colour);

}  // namespace clefkit::cli
