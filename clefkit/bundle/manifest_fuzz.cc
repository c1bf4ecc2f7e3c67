#include <cstdlib>

#include "clefkit/base/error.h"
#include "clefkit/bundle/manifest.h"

// What is accepted must survive being written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const clefkit::Manifest manifest = clefkit::parse_manifest(
        std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    const std::string text = to_string(clefkit::manifest_to_json(manifest));
    if (to_string(clefkit::manifest_to_json(clefkit::parse_manifest(text, "fuzz"))) != text) {
      std::abort();
    }
  } catch (const clefkit::Error&) {
  }
  return 0;
}
