#pragma once

#include <string_view>

namespace clefkit::server {

// Whether a client that asks for `asked` may be answered by the model called `own`: its own name,
// and the names that decision clients send by default (api.md 8.3), in any case and with
// surrounding blanks: jev-*, clef, clef-flash, each with a vendor before it (`@cf/cloudflare/`,
// `cloudflare/`, `typesafe/`, `~typesafe/`, …) and a tag after it (`:latest`).
bool is_model_alias(std::string_view asked, std::string_view own);

}  // namespace clefkit::server
