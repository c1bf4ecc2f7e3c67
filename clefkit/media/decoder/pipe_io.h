#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder_protocol.h"
#include "clefkit/media/image.h"

namespace clefkit::decoder {

// Fills `to` from standard input. Ends the process when the parent is gone: nobody is left to tell.
void read_all(std::span<std::uint8_t> to);

template <typename T>
requires std::is_trivially_copyable_v<T> T read_value() {
  T value{};
  read_all({reinterpret_cast<std::uint8_t*>(&value), sizeof value});
  return value;
}

// One message each on standard output.
void send_picture(const Image& image);
void send_times(std::span<const double> seconds);
void send_error(ErrorCode code, std::string_view sentence);

}  // namespace clefkit::decoder
