#include "clefkit/programs/fp16_tensor.h"

#include <cmath>

#include "clefkit/base/bytes.h"
#include "clefkit/base/error.h"

namespace clefkit {

std::vector<std::uint8_t> to_fp16_bytes(const TensorView& tensor) {
  const std::size_t count = tensor.element_count();
  std::vector<std::uint8_t> bytes(count * sizeof(Half));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = tensor.dtype == DType::kF32 ? tensor.float_values()[i]
                                                    : to_float(tensor.bfloat16_values()[i]);
    if (!std::isfinite(value) || std::fabs(value) > kMaxHalf) {
      throw_error(ErrorCode::kCorruptData, tensor.name,
                  "element {} is {}, expected a value that FP16 can hold (at most 65504)", i,
                  value);
    }
    store_le(bytes.data() + i * sizeof(Half), to_half(value).bits);
  }
  return bytes;
}

}  // namespace clefkit
