#pragma once

#include <cstddef>

#include "clefkit/kernels/linear.h"

namespace clefkit {

// The two inner pieces of an exact linear layer, in the best instruction set of this machine:
// decode a panel of weights to float32, and multiply it with packed tokens. Which panels and
// tokens, and on which thread, is linear_exact.cc's.

// Columns of a panel. Each sum over so many columns is one chain of multiply-adds, and these sums
// are added up from the left; so it is part of what results are, bit for bit. A panel of 256 stays
// in the level-1 cache.
constexpr std::size_t kPanelColumns = 256;

struct FloatTileShape {
  std::size_t channels;    // of a panel
  std::size_t max_tokens;  // of a tile; 1 … max_tokens give the same bits
};
// Constant on one machine.
FloatTileShape float_tile_shape();

// Tokens are cut into tiles of nearly equal size, none above `max_tokens`.
struct TokenTiles {
  std::size_t tokens = 0;
  std::size_t count = 0;

  TokenTiles(std::size_t token_count, std::size_t max_tokens)
      : tokens(token_count), count((token_count + max_tokens - 1) / max_tokens) {}
  std::size_t first_token(std::size_t tile) const { return tokens * tile / count; }
};

// A panel: `columns` (at most kPanelColumns) from `first_column` on, a multiple of kPanelColumns,
// of one tile's worth of channels from `first_channel` on. Reads nothing outside the rows.
struct PanelPlace {
  std::size_t first_channel = 0;
  std::size_t first_column = 0;
  std::size_t columns = 0;
};
// panel: [kPanelColumns, channels], aligned for the widest vectors. Channels past the matrix hold
// values without meaning, and so do columns past `place.columns`.
void decode_panel(const WeightMatrix& weight, const PanelPlace& place, float* panel);
// Asks the memory for what decode_panel will read of so many channels.
void prefetch_panel(const WeightMatrix& weight, const PanelPlace& place, std::size_t channels);

enum class Accumulate { kStart, kAdd };
// sums[token][channel] = or += Σ over `columns` of x · panel, for tiles [first_tile, end_tile).
//   x:    the packed tokens of these columns: per tile [columns, tokens of the tile]
//   sums: [tokens, channels] of these tiles, aligned
struct PanelProduct {
  const float* panel = nullptr;
  const float* x = nullptr;
  float* sums = nullptr;
  std::size_t columns = 0;
  std::size_t first_tile = 0;
  std::size_t end_tile = 0;
  Accumulate accumulate = Accumulate::kStart;
};
void multiply_panel(const TokenTiles& tiles, const PanelProduct& product);

}  // namespace clefkit
