#include "clefkit/kernels/lut6_activations.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace clefkit {
namespace {

// Below this largest magnitude a block counts as zero: its scale's inverse must stay finite.
constexpr float kTiny = 0x1p-100f;

struct Magnitudes {
  float largest;
  float sum;  // NaN or infinite if an element is
};

// Sixteen partial results in a fixed order: the same bits wherever the compiler finds vectors.
template <std::size_t kCount>
Magnitudes magnitudes(const std::array<float, kCount>& x) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> largest{}, sum{};
  for (std::size_t i = 0; i < kCount; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float magnitude = std::abs(x[i + lane]);
      largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
      sum[lane] += magnitude;
    }
  }
  for (std::size_t half = kLanes / 2; half != 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      largest[lane] = std::max(largest[lane], largest[lane + half]);
      sum[lane] += sum[lane + half];
    }
  }
  return {largest[0], sum[0]};
}

// Adding 1.5 · 2²³ leaves the integer nearest to a small value, ties to even, in the low bits.
template <typename T, std::size_t kCount>
void round_scaled(const std::array<float, kCount>& x, float factor, int limit, T* out) {
  constexpr float kMagic = 0x1.8p23f;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::int32_t value =
        std::bit_cast<std::int32_t>(x[i] * factor + kMagic) - std::bit_cast<std::int32_t>(kMagic);
    out[i] = static_cast<T>(std::clamp(value, -limit, limit));
  }
}

template <std::size_t kCount>
std::array<float, kCount> padded(std::span<const float> x) {
  assert(x.size() <= kCount);
  std::array<float, kCount> block{};
  std::memcpy(block.data(), x.data(), x.size_bytes());
  return block;
}

}  // namespace

float quantize_block(std::span<const float> x, std::span<std::int16_t> out) {
  constexpr std::size_t kBlock = kLut6Int16BlockColumns;
  constexpr float kLargest = 32767.0f;
  // What Σ |x| / scale may be, less what rounding may add; 0.9999 covers the float arithmetic.
  constexpr float kLargestSum = 0.9999f * 0x1p31f / kLargest - kBlock;
  assert(out.size() == kBlock);
  const std::array<float, kBlock> block = padded<kBlock>(x);
  const Magnitudes found = magnitudes(block);
  if (!std::isfinite(found.sum) || found.largest < kTiny) {
    std::fill(out.begin(), out.end(), std::int16_t{0});
    return std::isfinite(found.sum) ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  const float factor = std::min(kLargest / found.largest, kLargestSum / found.sum);
  round_scaled(block, factor, static_cast<int>(kLargest), out.data());
  return 1.0f / factor;
}

void pack_activations(const ComputeContext& context, MatrixView<const float> x,
                      const Lut6Layout& layout, std::int16_t* values, float* scales) {
  constexpr std::size_t kBlock = kLut6Int16BlockColumns, kDepth = 2;
  assert(x.rows == layout.tokens());
  context.parallel_for(layout.tile_count(), [&](std::size_t tile, std::size_t) {
    const std::size_t tokens = layout.tile_tokens(tile);
    for (std::size_t token = 0; token < tokens; ++token) {
      const std::span<const float> row = x.row(layout.first_token(tile) + token);
      for (std::size_t column = 0; column < layout.columns(); column += kBlock) {
        const std::size_t panel = column / kLut6PanelColumns * kLut6PanelColumns;
        const std::size_t block = (column - panel) / kBlock;
        std::array<std::int16_t, kBlock> quantized;
        const float scale =
            quantize_block(row.subspan(column, std::min(kBlock, row.size() - column)), quantized);
        scales[layout.scales_offset(panel, tile) + block * tokens + token] = scale;
        std::int16_t* const out =
            values + layout.values_offset(panel, tile) + block * kBlock * tokens + token * kDepth;
        for (std::size_t k = 0; k < kBlock; k += kDepth) {
          std::memcpy(out + k * tokens, &quantized[k], kDepth * sizeof quantized[0]);
        }
      }
    }
  });
}

}  // namespace clefkit
