#include <algorithm>
#include <utility>

#include "clefkit/server/assets.h"
#include "clefkit/server/system_one_body.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

std::string_view error_type(Refusal::Kind kind) {
  using Kind = Refusal::Kind;
  switch (kind) {
    case Kind::kNotJson:
    case Kind::kInvalid:
    case Kind::kUnsupported:
    case Kind::kMediaType:
      return "invalid_request_error";
    case Kind::kUnusedAsset:
    case Kind::kUnknownModel:
      return "api_usage_error";
    case Kind::kTooManyTokens:
    case Kind::kBodyTooLarge:
      return "request_too_large";
    case Kind::kUnauthorized:
      return "authentication_error";
    case Kind::kForbidden:
      return "permission_error";
    case Kind::kNotFound:
      return "not_found";
    case Kind::kMethodNotAllowed:
      return "method_not_allowed";
    case Kind::kBusy:
      return "rate_limit_error";
    case Kind::kStopping:
      return "overloaded_error";
    case Kind::kDeadline:
      return "timeout_error";
    case Kind::kInternal:
      break;
  }
  return "internal_error";
}

// Takes a quoted question id, `"a b"` or `"a very long one"…`, off the front of `where`.
Json take_quoted(std::string_view& where) {
  std::size_t end = 1;
  while (end < where.size() && where[end] != '"') end += where[end] == '\\' ? 2 : 1;
  const std::string_view text = where.substr(0, end + 1);
  where.remove_prefix(text.size());
  constexpr std::string_view kCut = "…";
  if (where.starts_with(kCut)) where.remove_prefix(kCut.size());
  try {
    return parse_json(text, "id", {});
  } catch (const Error&) {
    return text;
  }
}

// Takes `[12]` off the front of `where`.
Json take_index(std::string_view& where) {
  const std::string_view text = where.substr(1, where.find(']') - 1);
  where.remove_prefix(std::min(where.size(), text.size() + 2));
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return is_number ? Json(Json::Number{std::string(text)}) : Json(text);
}

// The list that validators write: `questions."a b".type` → ["body", "questions", "a b", "type"].
Json location_of(std::string_view where) {
  Json location = Json::array({"body"});
  if (where == "body") return location;
  bool is_question_id = false;
  while (!where.empty()) {
    if (where[0] == '.') where.remove_prefix(1);
    if (where.starts_with('"')) {
      location.push_back(take_quoted(where));
    } else if (where.starts_with('[') && !is_question_id) {
      location.push_back(take_index(where));
    } else {
      // An id that stands without quotes has no dot, but may have brackets.
      const std::string_view name =
          where.substr(0, where.find_first_of(is_question_id ? "." : ".["));
      location.push_back(name);
      where.remove_prefix(name.size());
    }
    is_question_id = location.items().size() == 2 && location.items()[1] == Json("questions");
  }
  return location;
}

Json validation_detail(const Refusal& refusal) {
  const std::string_view text = refusal.what();
  return Json::array(
      {Json::object({{"loc", location_of(refusal.where)},
                     {"msg", text},
                     {"type", text.starts_with("missing") ? "missing" : "value_error"}})});
}

http::Response with_typesafe_id(http::Response response, std::string_view request_id) {
  response.headers.emplace_back("x-typesafe-request-id", std::string(request_id));
  return response;
}

Call parse(const http::Request& request, std::span<const std::string>, const ModelIdentity& model) {
  const JsonLimits limits = system_one_json_limits();
  return read_system_one_call(
      is_multipart(request) ? read_multipart_body(request, limits) : read_body(request, limits),
      model);
}

http::Response answer(const Answer& answer) {
  return with_typesafe_id(json_response(200, system_one_answer_body(answer), answer.request_id),
                          answer.request_id);
}

// `detail` is what TypeSafe's clients read, `error` what Ollama's do.
http::Response refuse(const Refusal& refusal, std::string_view request_id) {
  // A body that is no JSON is a failed validation here, as jevcompat's conformance suite has it.
  const int status = refusal.kind == Refusal::Kind::kNotJson ? 422 : http_status(refusal.kind);
  const std::string message = client_message(refusal);
  Json detail =
      status == 422
          ? validation_detail(refusal)
          : Json::object({{"error_type", error_type(refusal.kind)}, {"message", message}});
  const Json body = Json::object({{"error", message}, {"detail", std::move(detail)}});
  return with_typesafe_id(error_response(status, body, refusal, request_id), request_id);
}

}  // namespace

const Dialect kSystemOne{"system_one", kMaxBodyBytes, parse, answer, refuse};

}  // namespace clefkit::server
