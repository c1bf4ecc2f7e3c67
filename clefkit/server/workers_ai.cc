#include <cstdint>
#include <utility>

#include "clefkit/base/trimmed.h"
#include "clefkit/server/wire.h"
#include "clefkit/server/workers_ai_rules.h"

namespace clefkit::server {
namespace {

constexpr std::size_t kBodyBytes = std::size_t{13} << 20;
constexpr int kDecimals = 4;
constexpr RequestLimits kLimits{
    .bytes = kBodyBytes, .max_questions = 64, .options = {2, 255}, .levels = {2, 10}};

// The path ends in @cf/cloudflare/clef-flash, the body's `model` says clef-flash.
void check_model(std::span<const std::string> path_arguments, const Json& body,
                 const ModelIdentity& model) {
  std::string_view in_path;
  if (path_arguments.size() > 1) {
    in_path = path_arguments[1];
    require_model(in_path, "", model);
    in_path.remove_prefix(in_path.rfind('/') + 1);  // Without a slash: npos + 1 is 0.
  }
  const Json* const in_body = body.find("model");
  if (in_body == nullptr) return;
  if (!in_body->is_string()) refuse_invalid("model", "{}, expected a string", found(in_body));
  if (in_path.empty()) return require_model(in_body->string(), "model", model);
  if (trimmed(in_body->string()) != trimmed(in_path)) {
    refuse_invalid("model", "{}, expected {} as in the path", found(in_body), in_quotes(in_path));
  }
}

Call parse(const http::Request& request, std::span<const std::string> path_arguments,
           const ModelIdentity& model) {
  Json body = read_body(request, json_limits_of(kLimits));
  check_model(path_arguments, body, model);
  check_workers_ai_body(body);
  Call call;
  call.request = request_from_json(std::move(body), "body", kLimits);
  call.answers = {.confidence = ConfidenceRule::kPurity, .round_digits = kDecimals};
  return call;
}

http::Response with_own_headers(http::Response response, std::string_view request_id) {
  response.headers.emplace_back("cf-ai-req-id", std::string(request_id));
  response.headers.emplace_back("cf-ray", std::string(request_id));  // All that some clients read.
  response.headers.emplace_back("cache-control", "no-store");
  return response;
}

http::Response answer(const Answer& answer) {
  const Response& response = answer.response;
  const Json usage =
      Json::object({{"input_tokens", std::uint64_t{response.input_tokens}}, {"output_tokens", 0}});
  const Json result =
      Json::object({{"model", answer.model.name}, {"answers", response.answers}, {"usage", usage}});
  return with_own_headers(json_response(200, workers_ai_envelope(result), answer.request_id),
                          answer.request_id);
}

// Its schema speaks of members that are missing and of types; everything else is refused by the
// model's own service, with another code.
bool is_schema_error(const Refusal& refusal) {
  return std::string_view(refusal.what()).starts_with("missing") ||
         (refusal.where.starts_with("questions.") && refusal.where.ends_with(".type"));
}

struct ErrorForm {
  int status;
  int code;
};

ErrorForm form_of(const Refusal& refusal) {
  using Kind = Refusal::Kind;
  switch (refusal.kind) {
    case Kind::kNotJson:
      return {400, 6003};
    case Kind::kMediaType:
      return {415, 6003};
    case Kind::kInvalid:
      return is_schema_error(refusal) ? ErrorForm{400, 5006} : ErrorForm{422, 5012};
    case Kind::kUnsupported:
    case Kind::kUnusedAsset:
      return {422, 5012};
    case Kind::kUnknownModel:
      return {400, 5007};
    case Kind::kTooManyTokens:
      return {413, 5021};
    case Kind::kBodyTooLarge:
      return {413, 3006};
    case Kind::kUnauthorized:
      return {401, 10000};
    case Kind::kForbidden:
      return {403, 10000};
    case Kind::kNotFound:
      return {400, 7000};
    case Kind::kMethodNotAllowed:
      return {405, 7001};
    case Kind::kBusy:
      return {429, 3040};
    case Kind::kStopping:
      return {503, 3040};
    case Kind::kDeadline:
      return {408, 3007};
    case Kind::kInternal:
      break;
  }
  return {529, 5012};
}

// The model's service answers in JSON, which the message then quotes.
std::string service_message(const Refusal& refusal) {
  const std::string field = refusal.where.substr(0, refusal.where.find_first_of(".["));
  const bool is_of_form = field.empty() || field == "body";
  const Json texts = Json::array({client_message(refusal)});
  const Json details =
      Json::object({{"formErrors", is_of_form ? texts : Json::array()},
                    {"fieldErrors", is_of_form ? Json::object() : Json::object({{field, texts}})}});
  return to_string(Json::object({{"error", Json::object({{"type", "invalid_request"},
                                                         {"message", client_message(refusal)},
                                                         {"details", details}})}}));
}

std::string message_of(const Refusal& refusal, ErrorForm form, std::string_view request_id) {
  const std::string text = client_message(refusal);
  if (form.code == 5006) return fmt::format("AiError: Bad input: {} ({})", text, request_id);
  if (form.status == 422) {
    return fmt::format("AiError: {} ({})", service_message(refusal), request_id);
  }
  return text;
}

http::Response refuse(const Refusal& refusal, std::string_view request_id) {
  const ErrorForm form = form_of(refusal);
  const Json error =
      Json::object({{"message", message_of(refusal, form, request_id)}, {"code", form.code}});
  const Json body = Json::object({{"errors", Json::array({error})},
                                  {"success", false},
                                  {"result", Json::object()},
                                  {"messages", Json::array()}});
  return with_own_headers(error_response(form.status, body, refusal, request_id), request_id);
}

}  // namespace

const Dialect kWorkersAi{"workers_ai", kBodyBytes, parse, answer, refuse};

}  // namespace clefkit::server
