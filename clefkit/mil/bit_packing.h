#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clefkit/base/bytes.h"

namespace clefkit::mil {

// How the weight blob file stores elements of 1 to 8 bits: element i takes bits n·i … n·i + n − 1
// of a string whose bit b is bit b mod 8, lowest first, of byte b div 8. Elements may straddle
// bytes; unused bits at the end are zero.

// Whole bytes that `count` elements take.
std::size_t packed_size_bytes(std::size_t count, unsigned bits_per_element);

// Every value is below 2^bits_per_element.
std::vector<std::uint8_t> pack_bits(std::span<const std::uint8_t> values,
                                    unsigned bits_per_element);

// `packed` has packed_size_bytes(count, bits_per_element) bytes.
std::vector<std::uint8_t> unpack_bits(Bytes packed, std::size_t count, unsigned bits_per_element);

}  // namespace clefkit::mil
