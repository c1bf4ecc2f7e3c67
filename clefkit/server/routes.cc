#include "clefkit/server/routes.h"

#include <array>

namespace clefkit::server {
namespace {

const std::array kRoutes{
    Route{"POST", "/v1/systemone", &kSystemOne},
    Route{"POST", "/v1/decisions", &kOpenAiDecisions},
    Route{"POST", "/api/v1/systemone", &kOpenRouter},
    Route{"POST", "/api/alpha/decisions", &kOpenRouter},
    Route{"POST", "/alpha/decisions", &kOpenRouter},
    Route{"POST", "/client/v4/accounts/*/ai/run/**", &kWorkersAi},
    Route{"POST", "/v4/ai/decision-model", &kVercelGateway},
    Route{"GET", "/v1/models", nullptr, Page::kModels},
    Route{"GET", "/v1/models/**", nullptr, Page::kModel},
    Route{"GET", "/api/v1/models", nullptr, Page::kOpenRouterModels},
    Route{"GET", "/v4/ai/config", nullptr, Page::kVercelModels},
    Route{"GET", "/api/tags", nullptr, Page::kOllamaTags},
    Route{"POST", "/api/show", nullptr, Page::kOllamaShow},
    Route{"GET", "/api/version", nullptr, Page::kOllamaVersion},
    Route{"GET", "/api/ps", nullptr, Page::kOllamaProcesses},
    Route{"GET", "/client/v4/accounts/*/ai/models/search", nullptr, Page::kWorkersSearch},
    Route{"GET", "/client/v4/accounts/*/ai/models/schema", nullptr, Page::kWorkersSchema},
    Route{"GET", "/metrics", nullptr, Page::kMetrics},
    Route{"GET", "/openapi.json", nullptr, Page::kOpenApi, true},
    Route{"GET", "/healthz", nullptr, Page::kHealth, true},
    Route{"GET", "/readyz", nullptr, Page::kReady, true},
    Route{"GET", "/", nullptr, Page::kPlayground, true},
    Route{"GET", "/playground.css", nullptr, Page::kPlaygroundStyle, true},
    Route{"GET", "/playground.js", nullptr, Page::kPlaygroundScript, true},
};

// Takes the first segment off a path that begins with "/".
std::string_view take_segment(std::string_view& path) {
  const std::size_t end = path.find('/', 1);
  const std::string_view segment = path.substr(1, end == path.npos ? path.npos : end - 1);
  path = end == path.npos ? std::string_view() : path.substr(end);
  return segment;
}

std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> arguments;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view expected = take_segment(pattern);
    if (expected == "**") {
      if (path.size() < 2) return std::nullopt;
      arguments.emplace_back(path.substr(1));
      return arguments;
    }
    const std::string_view segment = take_segment(path);
    if (expected == "*" && !segment.empty()) {
      arguments.emplace_back(segment);
    } else if (expected != segment) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return arguments;
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

Match match_route(std::string_view method, std::string_view path) {
  // A slash at the end, as some base URLs make, is none.
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  Match result;
  for (const Route& route : kRoutes) {
    auto arguments = match(route.pattern, path);
    if (!arguments) continue;
    if (!result.allowed_methods.empty()) result.allowed_methods += ", ";
    result.allowed_methods += route.method;
    if (route.method == "GET") result.allowed_methods += ", HEAD";
    if (route.method != method && !(route.method == "GET" && method == "HEAD")) continue;
    result.route = &route;
    result.arguments = std::move(*arguments);
    break;
  }
  return result;
}

const Dialect& dialect_near(std::string_view path) {
  if (path.starts_with("/client/")) return kWorkersAi;
  if (path.starts_with("/v1/decisions") || path.starts_with("/v1/chat")) return kOpenAiDecisions;
  if (path.starts_with("/api/v1") || path.starts_with("/api/alpha") || path.starts_with("/alpha")) {
    return kOpenRouter;
  }
  if (path.starts_with("/v4/ai")) return kVercelGateway;
  return kSystemOne;
}

}  // namespace clefkit::server
