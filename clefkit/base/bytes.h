#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace clefkit {

static_assert(std::endian::native == std::endian::little,
              "checkpoints and blobs are little-endian and mapped as they are");

using Bytes = std::span<const std::uint8_t>;

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Unaligned little-endian load and store. The caller has checked the range.
template <typename T>
requires std::is_trivially_copyable_v<T> T load_le(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
requires std::is_trivially_copyable_v<T>
void store_le(std::uint8_t* to, T value) { std::memcpy(to, &value, sizeof value); }

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace clefkit
