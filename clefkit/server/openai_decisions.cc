#include <cstdint>
#include <utility>

#include "clefkit/server/openai_content.h"
#include "clefkit/server/openai_questions.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

// A repeated key is refused in the protocol's own objects, but not in what a client shows as JSON:
// `input[].content[].data` and `questions[].instructions[].data`.
bool is_opaque(std::span<const std::string_view> path) { return path.size() >= 5; }

JsonLimits json_limits() {
  JsonLimits limits = json_limits_of({.bytes = kMaxBodyBytes});
  limits.last_wins_at = is_opaque;
  return limits;
}

Call parse(const http::Request& request, std::span<const std::string>, const ModelIdentity& model) {
  Json body = read_body(request, json_limits());
  if (!body.is_object()) refuse_invalid("body", "{}, expected an object", found(&body));
  if (const Json* const asked = find_value(body, "model")) {
    if (!asked->is_string()) refuse_invalid("model", "{}, expected a string", found(asked));
    require_model(asked->string(), "model", model);
  }
  std::vector<MediaSource> images;
  Json state = read_openai_input(find_member(body, "input"), images);
  OpenAiQuestions questions = read_openai_questions(find_member(body, "questions"), images);
  Call call;
  call.request = request_from_json(
      Json::object({{"state", std::move(state)}, {"questions", std::move(questions.system_one)}}),
      "body", {.bytes = kMaxBodyBytes});
  call.request.state_place = "input";
  call.request.images = std::move(images);
  call.memo = std::move(questions.memo);
  return call;
}

Json usage_of(const Response& response) {
  const std::uint64_t input = response.input_tokens;
  return Json::object({{"input_tokens", input},
                       {"input_tokens_details",
                        Json::object({{"cached_tokens", std::uint64_t{response.reused_tokens}},
                                      {"cache_write_tokens", 0}})},
                       {"output_tokens", 0},
                       {"output_tokens_details", Json::object({{"reasoning_tokens", 0}})},
                       {"total_tokens", input}});
}

http::Response answer(const Answer& answer) {
  const Response& response = answer.response;
  return json_response(
      200,
      Json::object(
          {{"answers", openai_answers(answer.call.request.questions, response.probabilities,
                                      response.answers, answer.call.memo)},
           {"model", answer.model.name},
           {"usage", usage_of(response)}}),
      answer.request_id);
}

struct ErrorForm {
  int status;
  std::string_view type;
  std::string_view code;  // Empty: null.
};

ErrorForm form_of(const Refusal& refusal) {
  using Kind = Refusal::Kind;
  constexpr std::string_view kClient = "invalid_request_error";
  constexpr std::string_view kServer = "server_error";
  const bool is_missing = std::string_view(refusal.what()).starts_with("missing");
  switch (refusal.kind) {
    case Kind::kNotJson:
      return {400, kClient, ""};
    case Kind::kInvalid:
      return {400, kClient, is_missing ? "missing_required_parameter" : "invalid_value"};
    case Kind::kUnknownModel:
      return {404, kClient, "model_not_found"};
    case Kind::kTooManyTokens:
      return {413, kClient, "context_length_exceeded"};
    case Kind::kBodyTooLarge:
      return {413, kClient, "request_too_large"};
    case Kind::kUnauthorized:
      return {401, kClient, "invalid_api_key"};
    case Kind::kForbidden:
      return {403, kClient, "forbidden"};
    case Kind::kNotFound:
      return {404, kClient, "not_found"};
    case Kind::kMethodNotAllowed:
      return {405, kClient, "method_not_allowed"};
    case Kind::kUnsupported:
    case Kind::kUnusedAsset:
      return {400, kClient, "unsupported_value"};
    case Kind::kMediaType:
      return {415, kClient, "unsupported_media_type"};
    case Kind::kBusy:
      return {429, "rate_limit_error", "rate_limit_exceeded"};
    case Kind::kStopping:
      return {503, kServer, "server_stopping"};
    case Kind::kDeadline:
      return {504, kServer, "timeout"};
    case Kind::kInternal:
      break;
  }
  return {500, kServer, ""};
}

http::Response refuse(const Refusal& refusal, std::string_view request_id) {
  const ErrorForm form = form_of(refusal);
  const bool has_param = !refusal.where.empty() && refusal.where != "body" && form.status < 500;
  const Json error = Json::object({{"message", client_message(refusal)},
                                   {"type", form.type},
                                   {"param", has_param ? Json(refusal.where) : Json()},
                                   {"code", form.code.empty() ? Json() : Json(form.code)}});
  return error_response(form.status, Json::object({{"error", error}}), refusal, request_id);
}

}  // namespace

const Dialect kOpenAiDecisions{"openai_decisions", kMaxBodyBytes, parse, answer, refuse};

}  // namespace clefkit::server
