#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clefkit {

// 8-bit RGB, row-major, channels interleaved: [height, width, 3].
struct Image {
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<std::uint8_t> rgb;
};

}  // namespace clefkit
