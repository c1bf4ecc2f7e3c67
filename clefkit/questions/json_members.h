#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"

// Reading the members of a request's objects, and saying what stood there.
namespace clefkit {

// Text of a request within a message: one line, not longer than a line, valid UTF-8.
std::string in_quotes(std::string_view text);
// What stands at a place, for "…, expected an object".
std::string found(const Json* value);

// The member of that name, or nullptr when it is missing, or this is no object.
Json* find_member(Json& object, std::string_view key);
// The same for a member whose null means that it is missing.
Json* find_value(Json& object, std::string_view key);

template <typename... Args>
[[noreturn]] void refuse_invalid(std::string where, fmt::format_string<Args...> format,
                                 Args&&... args) {
  throw_error(ErrorCode::kInvalidArgument, std::move(where), format, std::forward<Args>(args)...);
}

}  // namespace clefkit
