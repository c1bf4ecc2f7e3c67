#pragma once

#include <cstdint>
#include <vector>

#include "clefkit/safetensors/tensor_view.h"

namespace clefkit {

// The elements of a BF16 or F32 tensor rounded to FP16, as little-endian bytes. Throws
// Error(kCorruptData) with tensor and element for a value that is not finite or beyond ±65504.
std::vector<std::uint8_t> to_fp16_bytes(const TensorView& tensor);

}  // namespace clefkit
