#include "clefkit/kernels/lut6_activations.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <numeric>

namespace clefkit {

template <typename Value>
void pack_activations(const ComputeContext& context, MatrixView<const float> x,
                      const Lut6Packed<Value>& packed) {
  constexpr std::size_t kBlock = kLut6BlockColumns<Value>, kDepth = kLut6Depth<Value>;
  const Lut6Layout& layout = packed.layout;
  assert(x.rows == layout.tokens());
  context.parallel_for(layout.tile_count(), [&](std::size_t tile, std::size_t) {
    const std::size_t tokens = layout.tile_tokens(tile);
    for (std::size_t token = 0; token < tokens; ++token) {
      const std::span<const float> row = x.row(layout.first_token(tile) + token);
      for (std::size_t column = 0; column < layout.columns(); column += kBlock) {
        const std::size_t panel = column / kLut6PanelColumns * kLut6PanelColumns;
        const std::size_t block = (column - panel) / kBlock;
        const std::size_t place = layout.scales_offset(panel, tile) + block * tokens + token;
        std::array<Value, kBlock> quantized;
        packed.scales[place] = quantize_block(
            row.subspan(column, std::min(kBlock, row.size() - column)), std::span(quantized));
        if (packed.offsets != nullptr) {
          packed.offsets[place] =
              -kLut6WeightOffset * std::accumulate(quantized.begin(), quantized.end(), 0);
        }
        Value* const out = packed.values + layout.values_offset(panel, tile) +
                           block * kBlock * tokens + token * kDepth;
        for (std::size_t k = 0; k < kBlock; k += kDepth) {
          std::memcpy(out + k * tokens, &quantized[k], kDepth * sizeof(Value));
        }
      }
    }
  });
}

template void pack_activations(const ComputeContext&, MatrixView<const float>,
                               const Lut6Packed<std::int16_t>&);
template void pack_activations(const ComputeContext&, MatrixView<const float>,
                               const Lut6Packed<std::int8_t>&);

}  // namespace clefkit
