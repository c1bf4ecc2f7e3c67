#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "clefkit/http/message.h"
#include "clefkit/server/dialect.h"
#include "clefkit/server/routes.h"

namespace clefkit::server {

// What a page says that depends on nothing but the model and the request, whose path's wildcards
// are `arguments`; nothing for the others. 404 when the request names a model that is not served.
// Throws Refusal.
std::optional<http::Response> model_page(Page page, const http::Request& request,
                                         std::span<const std::string> arguments,
                                         const ModelIdentity& model);

// The files compiled into the program, by the names of CMakeLists.txt.
std::string_view asset(std::string_view name);

}  // namespace clefkit::server
