#include <cmath>

#include "clefkit/kernels/lut6_kernels.h"

namespace clefkit {
namespace {

unsigned index_at(const std::uint8_t* row, std::size_t column) {
  const std::uint8_t* const three = row + column / 4 * 3;
  const unsigned bits = three[0] | three[1] << 8 | three[2] << 16;
  return bits >> (6 * (column % 4)) & 63;
}

// kDepth neighbouring columns lie together: 2 of int16, 4 of int8 fill 32 bits.
template <typename T, std::size_t kDepth>
void decode(const Lut6Rows& rows, const T* table, T* panel) {
  for (std::size_t channel = 0; channel < kLut6GroupRows; ++channel) {
    const std::uint8_t* const row = rows.packed + channel * rows.row_bytes;
    for (std::size_t column = 0; column < rows.columns; ++column) {
      panel[(column / kDepth * kLut6GroupRows + channel) * kDepth + column % kDepth] =
          table[index_at(row, column)];
    }
  }
}

template <typename T, std::size_t kDepth, std::size_t kBlock>
void multiply(const Lut6Tile& tile) {
  const T* const panel = static_cast<const T*>(tile.panel);
  const T* const x = static_cast<const T*>(tile.x);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    for (std::size_t token = 0; token < tile.tokens; ++token) {
      const float scale = tile.scales[block * tile.tokens + token];
      for (std::size_t channel = 0; channel < kLut6GroupRows; ++channel) {
        std::int32_t dot = 0;
        for (std::size_t k = block * kBlock; k < (block + 1) * kBlock; ++k) {
          const std::size_t step = k / kDepth, lane = k % kDepth;
          dot += x[(step * tile.tokens + token) * kDepth + lane] *
                 panel[(step * kLut6GroupRows + channel) * kDepth + lane];
        }
        float& sum = tile.sums[token * kLut6GroupRows + channel];
        sum = std::fma(static_cast<float>(dot), scale, sum);
      }
    }
  }
}

}  // namespace

const Lut6Kernels kLut6ScalarKernels = {
    .name = "scalar",
    .panel_channels = kLut6GroupRows,
    .decode_int16 = decode<std::int16_t, 2>,
    .multiply_int16 = multiply<std::int16_t, 2, kLut6Int16BlockColumns>,
};

}  // namespace clefkit
