#include "clefkit/server/wire.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "clefkit/http/content_coding.h"
#include "clefkit/server/model_names.h"

namespace clefkit::server {
namespace {

constexpr char kBody[] = "body";

void add_retry_headers(const Refusal& refusal, http::Headers& headers) {
  if (!refusal.retry_after_seconds) return;
  const double seconds = std::clamp(*refusal.retry_after_seconds, 0.0, 86'400.0);
  const auto whole_at_least_one = [](double value) {
    return fmt::format("{}", std::max<std::int64_t>(1, std::llround(std::ceil(value))));
  };
  headers.emplace_back("Retry-After", whole_at_least_one(seconds));
  headers.emplace_back("retry-after-ms", whole_at_least_one(seconds * 1000));
}

}  // namespace

Json read_body(const http::Request& request, const JsonLimits& limits) {
  if (request.body.size() > limits.bytes) {
    throw Refusal(Refusal::Kind::kBodyTooLarge, kBody,
                  fmt::format("{} bytes, expected at most {}", request.body.size(), limits.bytes));
  }
  if (is_multipart(request)) {
    throw Refusal(Refusal::Kind::kNotJson, kBody,
                  fmt::format("{}, expected JSON with the media in it",
                              in_quotes(*request.header("content-type"))));
  }
  return parse_body(request.body, kBody, limits);
}

bool is_multipart(const http::Request& request) {
  constexpr std::string_view kMultipart = "multipart/";
  const std::string_view type = request.header("content-type").value_or("");
  return http::equal_ignoring_case(type.substr(0, kMultipart.size()), kMultipart);
}

Json parse_body(std::string_view text, const std::string& where, const JsonLimits& limits) {
  try {
    return parse_json(text, where, limits);
  } catch (const Error& error) {
    throw Refusal(Refusal::Kind::kNotJson, error.where(), error.message());
  }
}

void require_model(std::string_view asked, const std::string& where, const ModelIdentity& model) {
  if (is_model_alias(asked, model.name)) return;
  throw Refusal(Refusal::Kind::kUnknownModel, where,
                fmt::format("{}, expected {}", in_quotes(asked), in_quotes(model.name)));
}

http::Response json_response(int status, const Json& body, std::string_view request_id) {
  http::Response response;
  response.status = status;
  response.body = to_string(body);
  response.headers.emplace_back("x-request-id", std::string(request_id));
  return response;
}

http::Response error_response(int status, const Json& body, const Refusal& refusal,
                              std::string_view request_id) {
  http::Response response = json_response(status, body, request_id);
  add_retry_headers(refusal, response.headers);
  if (refusal.kind == Refusal::Kind::kMediaType) {
    response.headers.emplace_back("Accept-Encoding", std::string(http::kContentCodings));
  }
  if (refusal.kind == Refusal::Kind::kUnauthorized) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (refusal.kind == Refusal::Kind::kMethodNotAllowed) {
    response.headers.emplace_back("Allow", refusal.allowed_methods);
  }
  return response;
}

std::string client_message(const Refusal& refusal) {
  if (refusal.kind != Refusal::Kind::kInternal) return refusal.message();
  return "the server failed to answer; its log has the reason beside this request's id";
}

}  // namespace clefkit::server
