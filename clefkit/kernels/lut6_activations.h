#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/kernels/lut6_kernels.h"

namespace clefkit {

// Quantizes at most one block of activations; `out` is a whole block, and what has no activation
// becomes 0. Returns the scale: x ≈ out · scale. A block with an infinity or a NaN becomes zeros
// with a NaN scale, so that sums show it.
//
// int16: the finest scale for which no sum Σ out · w with |w| ≤ 32,767 can leave int32:
//   |Σ out · w| ≤ Σ |out| · 32,767, and Σ |out| ≤ Σ |x| / scale + 0.5 for each rounding,
// which is 2 to 4 bits finer than a worst-case budget in blocks that hold an outlier.
float quantize_block(std::span<const float> x, std::span<std::int16_t> out);
// int8, magnitudes up to 127: the finest scale for which AVX2 can add four products with unsigned
// weights up to 255 in an int16. Of columns 8i + {0, 1, 4, 5} and 8i + {2, 3, 6, 7} the positive
// values sum to at most 128, and so do the negative ones. On activations with outlier channels
// that costs next to nothing: relative RMSE 1.29e-2 against 1.21e-2 without (blocks of 32).
float quantize_block(std::span<const float> x, std::span<std::int8_t> out);

// Columns of one decoded panel, a multiple of every block: 16 channels of int16 take 8 KiB, and
// with the activations of a tile stay in the first-level cache. With 1,024 the kernels lose a
// sixth of their speed.
inline constexpr std::size_t kLut6PanelColumns = 256;

// Where a sweep's activations lie, in the order the kernels read them: panels of columns, then
// tiles of tokens, then [blocks][block / depth][tokens of the tile][depth].
class Lut6Layout {
 public:
  Lut6Layout(std::size_t tokens, std::size_t columns, std::size_t block_columns)
      : tokens_(tokens),
        columns_((columns + block_columns - 1) / block_columns * block_columns),
        block_columns_(block_columns),
        tile_count_((tokens + kLut6TileTokens - 1) / kLut6TileTokens) {}

  std::size_t tokens() const { return tokens_; }
  // Rounded up to whole blocks.
  std::size_t columns() const { return columns_; }
  std::size_t value_count() const { return tokens_ * columns_; }
  std::size_t scale_count() const { return value_count() / block_columns_; }

  // Tiles are as even as can be: a tile of one token costs nearly as much as one of three.
  std::size_t tile_count() const { return tile_count_; }
  std::size_t first_token(std::size_t tile) const { return tile * tokens_ / tile_count_; }
  std::size_t tile_tokens(std::size_t tile) const {
    return first_token(tile + 1) - first_token(tile);
  }

  std::size_t panel_blocks(std::size_t first_column) const {
    const std::size_t left = columns_ - first_column;
    return (left < kLut6PanelColumns ? left : kLut6PanelColumns) / block_columns_;
  }
  std::size_t values_offset(std::size_t first_column, std::size_t tile) const {
    return first_column * tokens_ + panel_blocks(first_column) * block_columns_ * first_token(tile);
  }
  std::size_t scales_offset(std::size_t first_column, std::size_t tile) const {
    return values_offset(first_column, tile) / block_columns_;
  }

 private:
  std::size_t tokens_;
  std::size_t columns_;
  std::size_t block_columns_;
  std::size_t tile_count_;
};

// The activations of a sweep, quantized. All arrays have the sizes that `layout` says.
template <typename Value>
struct Lut6Packed {
  Lut6Layout layout;
  Value* values;
  float* scales;
  std::int32_t* offsets;  // int8 only, else null: −128 · Σ x of each block, as `scales` lie
};

// Quantizes x into `packed`.
template <typename Value>
void pack_activations(const ComputeContext& context, MatrixView<const float> x,
                      const Lut6Packed<Value>& packed);

}  // namespace clefkit
