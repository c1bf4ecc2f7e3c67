#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "clefkit/base/error.h"
#include "clefkit/text/tokenizer.h"

// A file is refused with an Error, or gives a tokenizer that keeps every byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const clefkit::Tokenizer tokenizer({reinterpret_cast<const char*>(data), size}, "fuzz");
    constexpr std::string_view kText = "It's 12 <|im_end|>\n abcabc \xC3\xA9\xE4\xB8\x80";
    if (tokenizer.decode(tokenizer.encode(kText)) != kText) std::abort();
  } catch (const clefkit::Error&) {
  }
  return 0;
}
