#pragma once

#include "clefkit/base/json.h"
#include "clefkit/server/dialect.h"

// The bodies that System One and OpenRouter share.
namespace clefkit::server {

// How the body's text is to be parsed.
JsonLimits system_one_json_limits();

// Reads the union of what System One servers accept (api.md 8.2), and clefkit's own members:
// `x_confidence`, `x_round`, `x_truncate`. Members it does not know are ignored. Throws Error
// (kInvalidArgument) and Refusal(kUnknownModel).
Call read_system_one_call(Json body, const ModelIdentity& model);

// model, answers, usage, and what clefkit adds under x_ names.
Json system_one_answer_body(const Answer& answer);

}  // namespace clefkit::server
