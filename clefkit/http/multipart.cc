#include "clefkit/http/multipart.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/trimmed.h"
#include "clefkit/http/message.h"

namespace clefkit::http {
namespace {

constexpr char kBody[] = "body";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMaxBoundary = 70;  // RFC 2046.
constexpr std::size_t kMaxPartHeader = 8 << 10;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw_error(ErrorCode::kInvalidArgument, kBody, format, std::forward<Args>(args)...);
}

// The text up to `end`, which is taken off as well; nothing when it is not there.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  if (at == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return taken;
}

// A parameter's value off the front: a token, or a quoted string (RFC 9110 5.6).
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    value = trimmed(text.substr(0, text.find(';')));
    text.remove_prefix(std::min(text.find(';'), text.size()));
    return value;
  }
  std::size_t i = 1;
  while (i < text.size() && text[i] != '"') {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i++];
  }
  text.remove_prefix(std::min(i + 1, text.size()));
  return value;
}

// The value of a parameter of `header`: `form-data; name="a"; filename="b"`.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  while (take_until(header, ";")) {
    const auto key = take_until(header, "=");
    if (!key) break;
    const std::string value = take_value(header);
    if (equal_ignoring_case(trimmed(*key), name)) return value;
  }
  return std::nullopt;
}

Headers parse_part_headers(std::string_view text) {
  Headers headers;
  while (!text.empty()) {
    std::string_view line = text;
    if (const auto taken = take_until(text, kLineEnd)) {
      line = *taken;
    } else {
      text = {};
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos) refuse("a part with a header line without a colon");
    headers.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
  return headers;
}

// A part from what stands between two boundaries.
Part parse_part(std::string_view text) {
  Part part;
  std::string_view head;
  if (text.starts_with(kLineEnd)) {
    text.remove_prefix(kLineEnd.size());  // No header lines at all.
  } else if (const auto taken = take_until(text, "\r\n\r\n")) {
    head = *taken;
  } else {
    refuse("a part without an empty line after its header");
  }
  if (head.size() > kMaxPartHeader) {
    refuse("a part with a header of {} bytes, expected at most {}", head.size(), kMaxPartHeader);
  }
  const Headers headers = parse_part_headers(head);
  const auto name = parameter(find_header(headers, "content-disposition").value_or(""), "name");
  if (!name) refuse("a part without Content-Disposition: form-data; name=\"…\"");
  part.name = *name;
  part.content_type = find_header(headers, "content-type").value_or("");
  part.content = text;
  return part;
}

}  // namespace

std::vector<Part> parse_multipart(std::string_view content_type, std::string_view body,
                                  std::size_t max_parts) {
  const auto boundary = parameter(content_type, "boundary");
  if (!boundary) refuse("multipart without a boundary in its Content-Type, expected one");
  if (boundary->empty() || boundary->size() > kMaxBoundary) {
    refuse("multipart with a boundary of {} characters, expected 1 to {}", boundary->size(),
           kMaxBoundary);
  }
  const std::string first = "--" + *boundary;
  const std::string next = std::string(kLineEnd) + first;
  if (body.starts_with(first)) {
    body.remove_prefix(first.size());
  } else if (!take_until(body, next)) {
    refuse("multipart without its boundary");
  }
  std::vector<Part> parts;
  while (!body.starts_with("--")) {
    // White space may follow a boundary on its line.
    const auto padding = take_until(body, kLineEnd);
    if (!padding || !trimmed(*padding).empty()) refuse("a boundary with more on its line");
    const auto text = take_until(body, next);
    if (!text) refuse("multipart without its closing boundary");
    if (parts.size() == max_parts) refuse("more than {} parts", max_parts);
    Part part = parse_part(*text);
    if (std::ranges::find(parts, part.name, &Part::name) != parts.end()) {
      refuse("two parts called {:?}, expected one", std::string_view(part.name).substr(0, 64));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace clefkit::http
