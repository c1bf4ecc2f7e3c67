#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace clefkit {

// Element types of safetensors files, in the format's own order: its writers place tensors of a
// later type first. Types of less than a byte are left out.
enum class DType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

// Bytes of one element.
std::size_t size_bytes(DType dtype);
// As written in a file: "BF16", "F32".
std::string_view to_string(DType dtype);
// Empty when the name is not one of the above.
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace clefkit
