#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/server/dialect.h"

namespace clefkit::server {

// Things that are told without asking the model.
enum class Page {
  kNone,
  kHealth,
  kReady,
  kMetrics,
  kOpenApi,
  kModels,
  kModel,
  kOpenRouterModels,
  kVercelModels,
  kOllamaTags,
  kOllamaShow,
  kOllamaVersion,
  kOllamaProcesses,
  kWorkersSearch,
  kWorkersSchema,
  kPlayground,
  kPlaygroundStyle,
  kPlaygroundScript,
};

// `pattern` is a path whose segment `*` stands for any one segment, and whose last segment `**` for
// one or more.
struct Route {
  std::string_view method;
  std::string_view pattern;
  const Dialect* dialect = nullptr;  // Or a page.
  Page page = Page::kNone;
  bool is_open = false;  // To callers without a key as well.
};

// All that is served; openapi.json lists the same.
std::span<const Route> routes();

struct Match {
  const Route* route = nullptr;  // Null: nothing has that path, or not with that method.
  std::vector<std::string> arguments;
  std::string allowed_methods;  // Of all routes with that path: "GET, HEAD"; empty: there is none.
};
Match match_route(std::string_view method, std::string_view path);

// Whose errors a path without a route gets.
const Dialect& dialect_near(std::string_view path);

}  // namespace clefkit::server
