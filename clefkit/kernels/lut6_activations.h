#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/kernels/lut6_kernels.h"

namespace clefkit {

// Quantizes at most kLut6Int16BlockColumns activations; `out` has exactly that many, and those
// without an activation become 0. Returns the scale: x ≈ out · scale. The scale is the finest for
// which no sum Σ out · w with |w| ≤ 32,767 can leave int32:
//   |Σ out · w| ≤ Σ |out| · 32,767, and Σ |out| ≤ Σ |x| / scale + 0.5 for each rounding,
// which is 2 to 4 bits finer than a worst-case budget in blocks that hold an outlier.
// A block with an infinity or a NaN becomes zeros with a NaN scale, so that sums show it.
float quantize_block(std::span<const float> x, std::span<std::int16_t> out);

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

// Quantizes x into `values` and `scales`, which have the sizes that `layout` says.
void pack_activations(const ComputeContext& context, MatrixView<const float> x,
                      const Lut6Layout& layout, std::int16_t* values, float* scales);

}  // namespace clefkit
