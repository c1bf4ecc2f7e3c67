#include <cstdlib>

#include "clefkit/base/json.h"

// Whatever parses must print as text that parses to the same value.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto duplicates :
       {clefkit::DuplicateKeys::kReject, clefkit::DuplicateKeys::kLastWins}) {
    const clefkit::JsonLimits limits{.duplicates = duplicates};
    try {
      const clefkit::Json value = clefkit::parse_json(text, "fuzz", limits);
      if (!(clefkit::parse_json(to_string(value), "fuzz", limits) == value)) std::abort();
    } catch (const clefkit::Error&) {
    }
  }
  return 0;
}
