#pragma once

#include <string>

#include "clefkit/base/json.h"

namespace clefkit {

// JSON as the model saw it in training: Python's json.dumps(value, ensure_ascii=False,
// separators=(",", ":"), sort_keys=True) of what json.loads() makes of the text. Keys are sorted by
// code point at every depth; integers stay exact at any length (`-0` is `0`); other numbers go
// through a double and Python's repr, so `1e3` is `1000.0` and `1e999` is `Infinity`.
// Recurses as deep as the value is nested, which its parser has bounded.
std::string canonical_json(const Json& value);

// How a state or an instruction stands in the prompt: a string as it is, without quotes or
// escapes, anything else as canonical JSON.
std::string render_value(const Json& value);

}  // namespace clefkit
