#pragma once

#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/questions/request.h"

namespace clefkit::server {

// A state as Vercel's AI SDK writes it: a list of {type: "text", text}, {type: "json", value} and
// {type: "file", mediaType, data: {type: "data", data: base64}}.
struct AiSdkState {
  Json state{};  // The sole text or value, or the list of all.
  std::vector<MediaSource> images{}, videos{};
};

// Whether every entry of a list has the looks of such a part.
bool is_ai_sdk_parts(const Json& value);

// Throws Error(kInvalidArgument) naming the part: `stateParts[1].data`, for `where` "stateParts".
AiSdkState read_ai_sdk_parts(Json parts, const std::string& where);

}  // namespace clefkit::server
