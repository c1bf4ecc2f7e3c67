#include <cstdint>
#include <cstdlib>

#include "clefkit/base/error.h"
#include "clefkit/http/multipart.h"

// The first line is the Content-Type header, the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line_end = text.find('\n');
  if (line_end == text.npos) return 0;
  const std::string_view body = text.substr(line_end + 1);
  try {
    for (const clefkit::http::Part& part :
         clefkit::http::parse_multipart(text.substr(0, line_end), body, 8)) {
      // Within the body, and not more than it.
      if (part.content.data() < body.data() ||
          part.content.data() + part.content.size() > body.data() + body.size()) {
        std::abort();
      }
    }
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kInvalidArgument) std::abort();
  }
  return 0;
}
