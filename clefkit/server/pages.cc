#include "clefkit/server/pages.h"

#include <cstdint>

#include "clefkit/base/json.h"
#include "clefkit/server/model_names.h"
#include "clefkit/server/wire.h"
#include "clefkit/server/workers_ai_rules.h"

namespace clefkit::server {
namespace {

constexpr char kReleaseDate[] = "2026-10-01";
constexpr int kReleaseTime = 1790812800;  // The same.
constexpr char kDescription[] = "A Clef decision model on this machine";

// Scripts and styles come from this server alone, and nothing is asked of any other.
constexpr char kContentSecurityPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

http::Response json_page(const Json& body, int status = 200) {
  return {.status = status, .body = to_string(body), .headers = {}};
}

http::Response asset_page(std::string_view name, const char* content_type) {
  return {.content_type = content_type,
          .body = std::string(asset(name)),
          .headers = {{"Content-Security-Policy", kContentSecurityPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}}};
}

Json openai_model(const ModelIdentity& model) {
  return Json::object({{"id", model.name},
                       {"object", "model"},
                       {"created", kReleaseTime},
                       {"owned_by", "clefkit"}});
}

http::Response openai_model_page(std::string_view asked, const ModelIdentity& model) {
  if (is_model_alias(asked, model.name)) return json_page(openai_model(model));
  const Json error =
      Json::object({{"message", fmt::format("the model {} is not served here, expected {}",
                                            in_quotes(asked), in_quotes(model.name))},
                    {"type", "invalid_request_error"},
                    {"param", "model"},
                    {"code", "model_not_found"}});
  return json_page(Json::object({{"error", error}}), 404);
}

// One body for two families of clients: TypeSafe's reads `models`, OpenAI's `data`.
Json model_list(const ModelIdentity& model) {
  const Json described = Json::object(
      {{"name", model.name}, {"description", kDescription}, {"release_date", kReleaseDate}});
  return Json::object({{"models", Json::array({described})},
                       {"object", "list"},
                       {"data", Json::array({openai_model(model)})}});
}

// With all members that OpenRouter's SDK insists on.
Json openrouter_list(const ModelIdentity& model) {
  const Json listed = Json::object(
      {{"id", model.name},
       {"canonical_slug", model.name},
       {"name", model.name},
       {"created", kReleaseTime},
       {"description", kDescription},
       {"context_length", std::uint64_t{model.max_tokens}},
       {"architecture",
        Json::object({{"modality", model.has_vision ? "text+image->decisions" : "text->decisions"},
                      {"input_modalities",
                       model.has_vision ? Json::array({"text", "image"}) : Json::array({"text"})},
                      {"output_modalities", Json::array({"decisions"})},
                      {"tokenizer", "Other"},
                      {"instruct_type", nullptr}})},
       {"pricing", Json::object({{"prompt", "0"}, {"completion", "0"}})},
       {"top_provider", Json::object({{"is_moderated", false},
                                      {"context_length", std::uint64_t{model.max_tokens}},
                                      {"max_completion_tokens", nullptr}})},
       {"per_request_limits", nullptr},
       {"supported_parameters", Json::array()},
       {"supported_voices", nullptr},
       {"default_parameters", nullptr},
       {"links", Json::object({{"details", "/api/v1/models"}})}});
  return Json::object({{"data", Json::array({listed})},
                       {"links", Json::object({{"next", nullptr}})},
                       {"total_count", 1}});
}

Json vercel_list(const ModelIdentity& model) {
  return Json::object(
      {{"models", Json::array({Json::object(
                      {{"id", model.name},
                       {"name", model.name},
                       {"modelType", "decision"},
                       {"specification", Json::object({{"specificationVersion", "v4"},
                                                       {"provider", "clefkit"},
                                                       {"modelId", model.name}})}})})}});
}

Json ollama_model(const ModelIdentity& model) {
  return Json::object({{"name", model.name},
                       {"model", model.name},
                       {"modified_at", std::string(kReleaseDate) + "T00:00:00Z"},
                       {"size", model.size_bytes},
                       {"digest", model.digest},
                       {"details", Json::object({{"family", "clef"}, {"format", "clefkit"}})}});
}

Json ollama_list(const ModelIdentity& model) {
  return Json::object({{"models", Json::array({ollama_model(model)})}});
}

Json ollama_description(const ModelIdentity& model) {
  return Json::object({{"modelfile", ""},
                       {"parameters", ""},
                       {"template", ""},
                       {"details", Json::object({{"family", "clef"}, {"format", "clefkit"}})},
                       {"model_info", Json::object({{"general.architecture", "clef"}})},
                       {"capabilities", model.has_vision ? Json::array({"decision", "vision"})
                                                         : Json::array({"decision"})},
                       {"modified_at", std::string(kReleaseDate) + "T00:00:00Z"},
                       {"x_model_digest", model.digest}});
}

// Older clients say `name`.
http::Response ollama_show_page(const http::Request& request, const ModelIdentity& model) {
  constexpr JsonLimits kLimits{.bytes = 64 << 10};
  Json body = read_body(request, kLimits);
  const Json* asked = body.is_object() ? find_value(body, "model") : nullptr;
  if (asked == nullptr && body.is_object()) asked = find_value(body, "name");
  const auto failure = [](int status, const std::string& message) {
    return json_page(Json::object({{"error", message}}), status);
  };
  if (asked == nullptr || !asked->is_string()) {
    return failure(400, fmt::format("model: {}, expected a name", found(asked)));
  }
  if (is_model_alias(asked->string(), model.name)) return json_page(ollama_description(model));
  return failure(404, fmt::format("model {} not found, expected {}", in_quotes(asked->string()),
                                  in_quotes(model.name)));
}

Json workers_search(const ModelIdentity& model) {
  return workers_ai_envelope(
      Json::array({Json::object({{"id", model.digest},
                                 {"name", "@cf/cloudflare/" + model.name},
                                 {"description", "A Clef decision model on this machine"},
                                 {"task", Json::object({{"name", "Decision"}})},
                                 {"properties", Json::array()}})}));
}

Json workers_schema() {
  const Json description = Json::object({{"type", Json::array({"string", "object", "array"})}});
  const Json input = Json::object(
      {{"type", "object"},
       {"required", Json::array({"state", "questions"})},
       {"properties",
        Json::object(
            {{"model", Json::object({{"type", "string"}})},
             {"state", description},
             {"questions",
              Json::object({{"type", "object"}, {"minProperties", 1}, {"maxProperties", 64}})},
             {"images", Json::object({{"type", "array"}, {"maxItems", 4}})}})}});
  return workers_ai_envelope(
      Json::object({{"input", input}, {"output", Json::object({{"type", "object"}})}}));
}

}  // namespace

std::optional<http::Response> model_page(Page page, const http::Request& request,
                                         std::span<const std::string> arguments,
                                         const ModelIdentity& model) {
  switch (page) {
    case Page::kModels:
      return json_page(model_list(model));
    case Page::kModel:
      return openai_model_page(arguments.front(), model);
    case Page::kOpenRouterModels:
      return json_page(openrouter_list(model));
    case Page::kVercelModels:
      return json_page(vercel_list(model));
    case Page::kOllamaTags:
    case Page::kOllamaProcesses:
      return json_page(ollama_list(model));
    case Page::kOllamaShow:
      return ollama_show_page(request, model);
    case Page::kOllamaVersion:
      // The first version of Ollama that answers decision requests; clients compare.
      return json_page(Json::object({{"version", "0.40.0"}, {"x_version", model.version}}));
    case Page::kWorkersSearch:
      return json_page(workers_search(model));
    case Page::kWorkersSchema:
      return json_page(workers_schema());
    case Page::kOpenApi:
      return asset_page("openapi.json", "application/json");
    case Page::kPlayground:
      return asset_page("index.html", "text/html; charset=utf-8");
    case Page::kPlaygroundStyle:
      return asset_page("playground.css", "text/css; charset=utf-8");
    case Page::kPlaygroundScript:
      return asset_page("playground.js", "text/javascript; charset=utf-8");
    case Page::kNone:
    case Page::kHealth:
    case Page::kReady:
    case Page::kMetrics:
      break;
  }
  return std::nullopt;
}

}  // namespace clefkit::server
