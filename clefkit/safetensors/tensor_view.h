#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/half.h"
#include "clefkit/safetensors/dtype.h"

namespace clefkit {

// A tensor inside a mapped file, row-major and aligned for its type. Does not own the bytes: the
// file must outlive the view. A scalar has the empty shape.
struct TensorView {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<std::size_t> shape;
  Bytes bytes;

  std::size_t element_count() const { return bytes.size() / size_bytes(dtype); }

  // The elements; the caller has checked `dtype`.
  std::span<const BFloat16> bfloat16_values() const { return values<BFloat16>(DType::kBF16); }
  std::span<const Half> half_values() const { return values<Half>(DType::kF16); }
  std::span<const float> float_values() const { return values<float>(DType::kF32); }

 private:
  template <typename T>
  std::span<const T> values([[maybe_unused]] DType expected) const {
    assert(dtype == expected);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// The index of the first NaN or infinity among values of a floating point type; nothing for other
// types.
std::optional<std::size_t> find_non_finite(DType dtype, Bytes values);

// "[8192, 1, 4]", for messages.
std::string shape_text(std::span<const std::size_t> shape);

}  // namespace clefkit
