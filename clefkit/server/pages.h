#pragma once

#include <optional>
#include <string_view>

#include "clefkit/http/message.h"
#include "clefkit/server/dialect.h"
#include "clefkit/server/routes.h"

namespace clefkit::server {

// What a page that depends on nothing but the model's name says; nothing for the others.
std::optional<http::Response> static_page(Page page, const ModelIdentity& model);

// The files compiled into the program, by the names of CMakeLists.txt.
std::string_view asset(std::string_view name);

}  // namespace clefkit::server
