#include "clefkit/mil/bit_packing.h"

#include <cassert>

namespace clefkit::mil {

std::size_t packed_size_bytes(std::size_t count, unsigned bits_per_element) {
  assert(bits_per_element >= 1 && bits_per_element <= 8);
  return (count * bits_per_element + 7) / 8;
}

std::vector<std::uint8_t> pack_bits(std::span<const std::uint8_t> values,
                                    unsigned bits_per_element) {
  std::vector<std::uint8_t> packed(packed_size_bytes(values.size(), bits_per_element));
  std::size_t bit = 0;
  for (const std::uint8_t value : values) {
    assert(value >> bits_per_element == 0);
    const unsigned shifted = static_cast<unsigned>(value) << (bit % 8);
    packed[bit / 8] = static_cast<std::uint8_t>(packed[bit / 8] | shifted);
    // The part that straddles; absent at the very end, where there is no next byte.
    if (shifted >> 8 != 0) packed[bit / 8 + 1] = static_cast<std::uint8_t>(shifted >> 8);
    bit += bits_per_element;
  }
  return packed;
}

std::vector<std::uint8_t> unpack_bits(Bytes packed, std::size_t count, unsigned bits_per_element) {
  assert(packed.size() == packed_size_bytes(count, bits_per_element));
  const unsigned mask = (1u << bits_per_element) - 1;
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bit = i * bits_per_element;
    unsigned window = packed[bit / 8];
    if (bit / 8 + 1 < packed.size()) window |= static_cast<unsigned>(packed[bit / 8 + 1]) << 8;
    values[i] = static_cast<std::uint8_t>(window >> (bit % 8) & mask);
  }
  return values;
}

}  // namespace clefkit::mil
