#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/utf8.h"
#include "clefkit/text/tokenizer.h"

// Every text that is UTF-8 has ids, and they decode to a text with the same ids: its normal form.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using clefkit::Pretokenizer;
  static const std::string json = clefkit::read_file(
      CLEFKIT_SOURCE_DIR "/tests/golden/tokenizer/small_tokenizer.json", 1 << 20);
  static const clefkit::Tokenizer tokenizers[] = {
      clefkit::Tokenizer(json, "small", Pretokenizer::kPatternA),
      clefkit::Tokenizer(json, "small", Pretokenizer::kPatternB)};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_valid = clefkit::utf8_valid_prefix(text) == size;
  for (const clefkit::Tokenizer& tokenizer : tokenizers) {
    try {
      const auto ids = tokenizer.encode(text);
      if (!is_valid || tokenizer.encode(tokenizer.decode(ids)) != ids) std::abort();
    } catch (const clefkit::Error&) {
      if (is_valid) std::abort();
    }
  }
  return 0;
}
