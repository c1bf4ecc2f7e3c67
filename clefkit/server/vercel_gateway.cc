#include <cstdint>
#include <utility>

#include "clefkit/server/ai_sdk_parts.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

// A repeated key is refused where it has a meaning here, as in json_limits_of().
bool is_opaque(std::span<const std::string_view> path) {
  if (path.empty()) return false;
  if (path[0] == "stateParts") return path.size() > 2 && path[2] != "data";
  if (path[0] != "questions") return true;
  return path.size() > 3 || (path.size() == 3 && path[2] != "criteria");
}

JsonLimits json_limits() {
  JsonLimits limits = json_limits_of({.bytes = kMaxBodyBytes});
  limits.last_wins_at = is_opaque;
  return limits;
}

// The SDK's `boolean` is System One's `noul`; the other types are the same in both.
void rename_types(Json& questions) {
  if (!questions.is_object()) return;
  for (auto& [id, question] : questions.members()) {
    Json* const type = find_member(question, "type");
    if (!question.is_object()) continue;
    const std::string_view name =
        type != nullptr && type->is_string() ? std::string_view(type->string()) : "";
    if (name == "boolean") {
      *type = "noul";
    } else if (name != "choice" && name != "score") {
      refuse_invalid(question_place(id) + ".type", "{}, expected boolean, choice or score",
                     found(type));
    }
  }
}

Call parse(const http::Request& request, std::span<const std::string>, const ModelIdentity& model) {
  Json body = read_body(request, json_limits());
  if (!body.is_object()) refuse_invalid("body", "{}, expected an object", found(&body));
  if (const auto asked = request.header("ai-model-id")) require_model(*asked, "ai-model-id", model);
  Json* const parts = find_member(body, "stateParts");
  if (parts == nullptr) refuse_invalid("stateParts", "missing, expected an array of parts");
  AiSdkState state = read_ai_sdk_parts(std::move(*parts), "stateParts");
  Json system_one = Json::object({{"state", std::move(state.state)}});
  if (Json* const questions = find_member(body, "questions")) {
    rename_types(*questions);
    system_one.set("questions", std::move(*questions));
  }
  Call call;
  call.request = request_from_json(std::move(system_one), "body", {.bytes = kMaxBodyBytes});
  call.request.state_place = "stateParts";
  call.request.images = std::move(state.images);
  call.request.videos = std::move(state.videos);
  return call;
}

Json answer_of(const Question& question, const Json& system_one) {
  if (question.type == QuestionType::kNoul) {
    return Json::object({{"type", "boolean"}, {"probability", *system_one.find("noul")}});
  }
  const std::string name(to_string(question.type));
  return Json::object({{"type", name},
                       {name, *system_one.find(name)},
                       {"probabilities", *system_one.find("probabilities")}});
}

// Numbers are not rounded, so the answer declares no rounding.
http::Response answer(const Answer& answer) {
  const std::vector<Question>& questions = answer.call.request.questions;
  const Json& system_one = answer.response.answers;
  Json answers = Json::object();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    answers.set(questions[i].id, answer_of(questions[i], system_one.members()[i].second));
  }
  const Json usage = Json::object(
      {{"inputTokens", std::uint64_t{answer.response.input_tokens}}, {"outputTokens", 0}});
  const Json metadata = Json::object({{"requestId", answer.request_id},
                                      {"modelDigest", answer.model.digest},
                                      {"version", answer.model.version}});
  return json_response(200,
                       Json::object({{"answers", std::move(answers)},
                                     {"model", answer.model.name},
                                     {"usage", usage},
                                     {"warnings", Json::array()},
                                     {"providerMetadata", Json::object({{"clefkit", metadata}})}}),
                       answer.request_id);
}

int status_of(Refusal::Kind kind) {
  if (kind == Refusal::Kind::kUnknownModel) return 404;
  const int status = http_status(kind);
  return status == 422 ? 400 : status;
}

// The names that the SDK turns into errors of their own.
std::string_view error_type(Refusal::Kind kind) {
  using Kind = Refusal::Kind;
  switch (kind) {
    case Kind::kUnknownModel:
      return "model_not_found";
    case Kind::kUnauthorized:
      return "authentication_error";
    case Kind::kForbidden:
      return "forbidden";
    case Kind::kNotFound:
      return "not_found";
    case Kind::kBusy:
      return "rate_limit_exceeded";
    case Kind::kStopping:
    case Kind::kDeadline:
    case Kind::kInternal:
      return "internal_server_error";
    default:
      return "invalid_request_error";
  }
}

http::Response refuse(const Refusal& refusal, std::string_view request_id) {
  const Json error =
      Json::object({{"message", client_message(refusal)}, {"type", error_type(refusal.kind)}});
  return error_response(status_of(refusal.kind), Json::object({{"error", error}}), refusal,
                        request_id);
}

}  // namespace

const Dialect kVercelGateway{"vercel_gateway", kMaxBodyBytes, parse, answer, refuse};

}  // namespace clefkit::server
