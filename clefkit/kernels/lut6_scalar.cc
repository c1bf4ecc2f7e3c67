#include <cmath>

#include "clefkit/kernels/lut6_kernels.h"

namespace clefkit {
namespace {

unsigned index_at(const std::uint8_t* row, std::size_t column) {
  const std::uint8_t* const three = row + column / 4 * 3;
  const unsigned bits = three[0] | three[1] << 8 | three[2] << 16;
  return bits >> (6 * (column % 4)) & 63;
}

template <std::size_t kChannels, typename Value, typename PanelValue, int kOffset>
void decode(const Lut6Rows& rows, const Value* table, void* panel) {
  constexpr std::size_t kDepth = kLut6Depth<Value>;
  auto* const out = static_cast<PanelValue*>(panel);
  for (std::size_t channel = 0; channel < kLut6GroupRows; ++channel) {
    const std::uint8_t* const row = rows.packed + channel * rows.row_bytes;
    for (std::size_t column = 0; column < rows.columns; ++column) {
      out[(column / kDepth * kChannels + channel) * kDepth + column % kDepth] =
          static_cast<PanelValue>(table[index_at(row, column)] + kOffset);
    }
  }
}

template <std::size_t kChannels, typename Value, typename PanelValue>
void multiply(const Lut6Tile& tile) {
  constexpr std::size_t kDepth = kLut6Depth<Value>, kBlock = kLut6BlockColumns<Value>;
  const auto* const panel = static_cast<const PanelValue*>(tile.panel);
  const auto* const x = static_cast<const Value*>(tile.x);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    for (std::size_t token = 0; token < tile.tokens; ++token) {
      const std::size_t i = block * tile.tokens + token;
      for (std::size_t channel = 0; channel < kChannels; ++channel) {
        std::int32_t dot = tile.offsets == nullptr ? 0 : tile.offsets[i];
        for (std::size_t k = block * kBlock; k < (block + 1) * kBlock; ++k) {
          const std::size_t step = k / kDepth, lane = k % kDepth;
          dot += x[(step * tile.tokens + token) * kDepth + lane] *
                 panel[(step * kChannels + channel) * kDepth + lane];
        }
        float& sum = tile.sums[token * kChannels + channel];
        sum = std::fma(static_cast<float>(dot), tile.scales[i], sum);
      }
    }
  }
}

template <std::size_t kChannels>
constexpr Lut6Kernels scalar_kernels(const char* name) {
  return {
      .name = name,
      .panel_channels = kChannels,
      .int16 = {decode<kChannels, std::int16_t, std::int16_t, 0>,
                multiply<kChannels, std::int16_t, std::int16_t>},
      .int8 = {decode<kChannels, std::int8_t, std::uint8_t, kLut6WeightOffset>,
               multiply<kChannels, std::int8_t, std::uint8_t>},
  };
}

}  // namespace

const Lut6Kernels kLut6ScalarKernels = scalar_kernels<kLut6GroupRows>("scalar");
const Lut6Kernels kLut6WideScalarKernels = scalar_kernels<4 * kLut6GroupRows>("wide scalar");

}  // namespace clefkit
