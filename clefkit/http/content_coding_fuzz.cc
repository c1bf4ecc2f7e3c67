#include <cstdint>
#include <cstdlib>

#include "clefkit/base/error.h"
#include "clefkit/http/content_coding.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMax = 1 << 20;
  try {
    const std::string body(reinterpret_cast<const char*>(data), size);
    if (clefkit::http::decode_content("zstd", body, kMax).size() > kMax) std::abort();
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kInvalidArgument &&
        error.code() != clefkit::ErrorCode::kTooLarge) {
      std::abort();
    }
  }
  return 0;
}
