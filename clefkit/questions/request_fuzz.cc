#include <cstdlib>

#include "clefkit/questions/canonical_json.h"
#include "clefkit/questions/request.h"

using clefkit::Json;
using clefkit::Request;

// Whatever is accepted satisfies what its users rely on, and canonical JSON is its own fixed point.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Request request = clefkit::parse_request(text, "fuzz");
    if (request.questions.empty()) std::abort();
    for (const clefkit::Question& question : request.questions) {
      if (question.options.empty() || question.options.size() > 255) std::abort();
      if (question.id.empty() && !question.instructions) std::abort();
    }
    const std::string canonical = clefkit::canonical_json(request.state);
    // `Infinity` is Python's, not JSON.
    if (canonical.find("Infinity") != canonical.npos) return 0;
    if (clefkit::canonical_json(clefkit::parse_json(canonical, "canonical", {})) != canonical) {
      std::abort();
    }
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kInvalidArgument) std::abort();
  }
  return 0;
}
