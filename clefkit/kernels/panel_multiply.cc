#include <utility>

#include "clefkit/kernels/panel_kernels.h"

// Panels are arrays of vectors, which scalable vectors cannot be; such machines run NEON.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/panel_multiply.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
using Floats = hn::Vec<decltype(kFloats)>;

// A tile's accumulators are two vectors a token. With two vectors of weights and one of x they fill
// 16 or 32 registers; on NEON g++ loads all values of x first and needs room for them.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kMaxTokens = 12;
#elif HWY_TARGET == HWY_NEON
constexpr std::size_t kMaxTokens = 8;
#else
constexpr std::size_t kMaxTokens = 6;
#endif

FloatTileShape tile_shape() {
  return {.channels = 2 * hn::Lanes(kFloats), .max_tokens = kMaxTokens};
}

template <std::size_t kTokens>
HWY_INLINE void multiply_tile(const PanelProduct& product, const float* HWY_RESTRICT x,
                              float* HWY_RESTRICT sums) {
  constexpr std::size_t kLanes = hn::MaxLanes(kFloats);
  Floats low[kTokens];
  Floats high[kTokens];
  // Without the pragma g++ 12 keeps the arrays in memory before and after the loop over columns.
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kTokens; ++i) low[i] = high[i] = hn::Zero(kFloats);
  const float* HWY_RESTRICT panel = product.panel;
  for (std::size_t column = 0; column < product.columns; ++column) {
    const Floats low_weights = hn::Load(kFloats, panel);
    const Floats high_weights = hn::Load(kFloats, panel + kLanes);
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kTokens; ++i) {
      const Floats value = hn::Set(kFloats, x[i]);
      low[i] = hn::MulAdd(value, low_weights, low[i]);
      high[i] = hn::MulAdd(value, high_weights, high[i]);
    }
    panel += 2 * kLanes;
    x += kTokens;
  }
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kTokens; ++i, sums += 2 * kLanes) {
    if (product.accumulate == Accumulate::kAdd) {
      low[i] = hn::Add(hn::Load(kFloats, sums), low[i]);
      high[i] = hn::Add(hn::Load(kFloats, sums + kLanes), high[i]);
    }
    hn::Store(low[i], kFloats, sums);
    hn::Store(high[i], kFloats, sums + kLanes);
  }
}

using TileFunction = void (*)(const PanelProduct&, const float*, float*);

template <std::size_t... kIndices>
TileFunction tile_function(std::size_t tokens, std::index_sequence<kIndices...>) {
  static constexpr TileFunction kFunctions[] = {multiply_tile<kIndices + 1>...};
  return kFunctions[tokens - 1];
}

void multiply(const TokenTiles& tiles, const PanelProduct& product) {
  const std::size_t origin = tiles.first_token(product.first_tile);
  for (std::size_t tile = product.first_tile; tile < product.end_tile; ++tile) {
    const std::size_t first = tiles.first_token(tile);
    const std::size_t count = tiles.first_token(tile + 1) - first;
    tile_function(count, std::make_index_sequence<kMaxTokens>())(
        product, product.x + first * product.columns,
        product.sums + (first - origin) * 2 * hn::Lanes(kFloats));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {

HWY_EXPORT(tile_shape);
HWY_EXPORT(multiply);

FloatTileShape float_tile_shape() { return HWY_DYNAMIC_DISPATCH(tile_shape)(); }

void multiply_panel(const TokenTiles& tiles, const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply)(tiles, product);
}

}  // namespace clefkit
#endif  // HWY_ONCE
