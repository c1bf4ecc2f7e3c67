#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/model/tensor_plan.h"

// Whatever is accepted has a plan whose sizes do not overflow.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\0');
  if (cut == std::string_view::npos) return 0;
  try {
    const auto config = clefkit::parse_model_config(text.substr(0, cut), text.substr(cut + 1));
    for (const clefkit::PlannedTensor& tensor : clefkit::plan_tensors(config)) {
      if (tensor.element_count() == 0) std::abort();
      if (tensor.element_count() > (std::size_t{1} << 62)) std::abort();
    }
  } catch (const clefkit::Error&) {
  }
  return 0;
}
