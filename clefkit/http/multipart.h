#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit::http {

// A part of a multipart/form-data body.
struct Part {
  std::string name{};
  std::string content_type{};  // Empty when the part has none.
  std::string_view content{};  // Within the body.
};

// Splits a multipart/form-data body (RFC 7578, RFC 2046 5.1). `content_type` is the header with the
// boundary; what stands before the first boundary and after the last is ignored. Throws
// Error(kInvalidArgument): no usable boundary, no closing boundary, a part without a name, two
// parts with one name, more than `max_parts`.
std::vector<Part> parse_multipart(std::string_view content_type, std::string_view body,
                                  std::size_t max_parts);

}  // namespace clefkit::http
