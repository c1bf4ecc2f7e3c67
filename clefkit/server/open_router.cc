#include <iterator>
#include <utility>

#include "clefkit/server/ai_sdk_parts.h"
#include "clefkit/server/system_one_body.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

// OpenRouter's own statuses: it knows neither 422 nor 504.
int status_of(Refusal::Kind kind) {
  const int status = http_status(kind);
  if (status == 422) return 400;
  return status == 504 ? 524 : status;
}

void append(std::vector<MediaSource> from, std::vector<MediaSource>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// OpenRouter's provider for the AI SDK passes that SDK's parts on as the state.
Call parse(const http::Request& request, std::span<const std::string>, const ModelIdentity& model) {
  Json body = read_body(request, system_one_json_limits());
  AiSdkState parts;
  if (Json* const state = find_member(body, "state"); state != nullptr && is_ai_sdk_parts(*state)) {
    parts = read_ai_sdk_parts(std::move(*state), "state");
    *state = std::move(parts.state);
  }
  Call call = read_system_one_call(std::move(body), model);
  append(std::move(parts.images), call.request.images);
  append(std::move(parts.videos), call.request.videos);
  return call;
}

http::Response answer(const Answer& answer) {
  Json body = system_one_answer_body(answer);
  body.set("id", answer.request_id);
  body.set("provider", "clefkit");
  find_member(body, "usage")->set("cost", 0);
  return json_response(200, body, answer.request_id);
}

http::Response refuse(const Refusal& refusal, std::string_view request_id) {
  const int status = status_of(refusal.kind);
  const Json body = Json::object(
      {{"error", Json::object({{"code", status}, {"message", client_message(refusal)}})}});
  return error_response(status, body, refusal, request_id);
}

}  // namespace

const Dialect kOpenRouter{"open_router", kMaxBodyBytes, parse, answer, refuse};

}  // namespace clefkit::server
