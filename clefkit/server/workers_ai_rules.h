#pragma once

#include "clefkit/base/json.h"

namespace clefkit::server {

// Workers AI refuses whatever its schema does not name (api.md 2.2); checks all of it that reading
// a System One request would let pass. A picture's pixels are counted later, when it is decoded.
// Throws Error(kInvalidArgument) naming the member.
void check_workers_ai_body(const Json& body);

// What Workers AI wraps round every result.
Json workers_ai_envelope(Json result);

}  // namespace clefkit::server
