#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clefkit::http {

// What a Content-Encoding header may say here, for the header Accept-Encoding of a refusal (RFC
// 7694).
inline constexpr std::string_view kContentCodings = "zstd";

// A body as it was before its Content-Encoding (RFC 9110 8.4): "zstd" (RFC 8878), or "identity" and
// the empty text for a body that is not compressed. Throws Error: kUnsupported for another coding,
// kTooLarge for a body of more than `max_bytes` when decoded (what does not fit is not decoded),
// kInvalidArgument for one that is not whole and valid.
std::string decode_content(std::string_view coding, std::string body, std::size_t max_bytes);

}  // namespace clefkit::http
