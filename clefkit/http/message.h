#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clefkit::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name, case-insensitively.
std::optional<std::string_view> find_header(const Headers& headers, std::string_view name);

// A request as it arrived. Its body is whole and within the server's limits.
struct Request {
  std::string method{};
  // The target's path with its segments percent-decoded one by one: an encoded slash is a slash
  // like any other afterwards. Always begins with "/".
  std::string path{};
  std::string query{};  // As it stands after the "?".
  Headers headers{};
  std::string body{};

  std::optional<std::string_view> header(std::string_view name) const {
    return find_header(headers, name);
  }
};

// Content-Length, Connection and Date are the transport's business.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body{};
  Headers headers{};
};

// Of ASCII letters alone, as HTTP's tokens are compared.
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Decodes "%41" to "A"; nothing for a "%" without two hex digits after it, and for a NUL.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace clefkit::http
