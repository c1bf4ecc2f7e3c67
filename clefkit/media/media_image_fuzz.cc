#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/media/base64.h"
#include "clefkit/media/decoder/image_formats.h"

using namespace clefkit;

// Bytes of a stranger's picture, and the same bytes as base64 text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kMaxPixels = 1 << 20;
  (void)decode_base64({reinterpret_cast<const char*>(data), size});
  try {
    const Image image = decoder::decode_image_file({data, size}, kMaxPixels, true);
    if (image.height == 0 || image.width == 0 || image.height > kMaxPixels / image.width ||
        image.rgb.size() != image.height * image.width * 3) {
      std::abort();
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) std::abort();
  }
  return 0;
}
