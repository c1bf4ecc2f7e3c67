#include "clefkit/safetensors/tensor_view.h"

#include <algorithm>
#include <cstdint>

namespace clefkit {
namespace {

// NaN and the infinities are the values whose exponent is all ones.
template <typename Bits>
std::optional<std::size_t> find_exponent(Bytes bytes, Bits exponent) {
  constexpr std::size_t kBlock = 4096;  // Looked at without branches.
  const std::span values(reinterpret_cast<const Bits*>(bytes.data()), bytes.size() / sizeof(Bits));
  const auto is_special = [&](Bits value) { return (value & exponent) == exponent; };
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    unsigned any = 0;
    for (const Bits value : block) any |= is_special(value) ? 1u : 0u;
    if (any == 0) continue;
    const auto found = std::ranges::find_if(block, is_special);
    return begin + static_cast<std::size_t>(found - block.begin());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> find_non_finite(DType dtype, Bytes values) {
  switch (dtype) {
    case DType::kBF16:
      return find_exponent<std::uint16_t>(values, 0x7F80);
    case DType::kF16:
      return find_exponent<std::uint16_t>(values, 0x7C00);
    case DType::kF32:
      return find_exponent<std::uint32_t>(values, 0x7F800000);
    default:
      return std::nullopt;
  }
}

}  // namespace clefkit
