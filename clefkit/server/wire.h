#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"
#include "clefkit/http/message.h"
#include "clefkit/questions/json_members.h"
#include "clefkit/server/dialect.h"
#include "clefkit/server/refusal.h"

// What all dialects do alike with bodies, headers and messages.
namespace clefkit::server {

// The request's body as JSON. Throws Refusal: kBodyTooLarge or kNotJson.
Json read_body(const http::Request& request, const JsonLimits& limits);
bool is_multipart(const http::Request& request);
// JSON text, of which `where` is the name. Throws Refusal(kNotJson).
Json parse_body(std::string_view text, const std::string& where, const JsonLimits& limits);

// Throws Refusal(kUnknownModel) unless `asked`, which stands at `where`, names `model`.
void require_model(std::string_view asked, const std::string& where, const ModelIdentity& model);

http::Response json_response(int status, const Json& body, std::string_view request_id);
// The same for an error, with the headers that say when to come back.
http::Response error_response(int status, const Json& body, const Refusal& refusal,
                              std::string_view request_id);

// The refusal's message as far as it concerns the client: a failure of ours is not its business,
// and may name our files.
std::string client_message(const Refusal& refusal);

}  // namespace clefkit::server
