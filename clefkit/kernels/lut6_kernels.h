#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// The seam between the LUT-6 driver (lut6_linear.cc) and the code of one instruction set. Included
// by files that compile for wider instruction sets than the rest of the program, so it holds plain
// data only: an inline function here could be emitted there and then run anywhere.
namespace clefkit {

// Palettes are shared by 16 output channels, so weights are decoded 16 rows at a time.
inline constexpr std::size_t kLut6GroupRows = 16;
// Decoders work on 16 columns (12 bytes of a row) at a time.
inline constexpr std::size_t kLut6DecodeColumns = 16;
// A tile holds at most this many tokens: its sums fill the registers of AVX2.
inline constexpr std::size_t kLut6TileTokens = 6;

// Columns that share one activation scale: integer sums end, and become float, with the block.
template <typename Value>
inline constexpr std::size_t kLut6BlockColumns = 0;
template <>
inline constexpr std::size_t kLut6BlockColumns<std::int16_t> = 64;
template <>
inline constexpr std::size_t kLut6BlockColumns<std::int8_t> = 32;

// Neighbouring columns that fill 32 bits: the unit of multiply-add instructions and of all layouts.
template <typename Value>
inline constexpr std::size_t kLut6Depth = 4 / sizeof(Value);

// x86 multiplies int8 weights as w + 128, unsigned: the sums of a block start at −128 · Σ x.
inline constexpr int kLut6WeightOffset = 128;

// Sixteen rows of packed indices. `columns` is a multiple of kLut6DecodeColumns; decoders may read
// 4 bytes past the last column of each row.
struct Lut6Rows {
  const std::uint8_t* packed;
  std::size_t row_bytes;
  std::size_t columns;
};

// A few tokens against one decoded panel of channels:
//   sums[token][channel] = fma(float(Σ x · w over the block), scales[block][token], sums[…])
// for one block after the other, each sum of integers exact in int32.
struct Lut6Tile {
  const void* panel;            // decoded weights, see Lut6Arithmetic
  const void* x;                // [blocks][block / depth][tokens][depth]
  const float* scales;          // [blocks][tokens]
  const std::int32_t* offsets;  // int8 only: −128 · Σ x, [blocks][tokens]
  float* sums;                  // [tokens][panel_channels], 64-byte aligned
  std::size_t tokens;           // 1 to kLut6TileTokens
  std::size_t blocks;
};

template <typename Value>
struct Lut6Arithmetic {
  // Decodes one group into its place in a panel [columns / depth][panel_channels][depth]: `panel`
  // points at the group's first channel of column 0. `table` has 64 entries; int8 ones are ≥ −127
  // and arrive in the panel as w + 128. Where a panel is one group, only `multiply` must know the
  // order within kLut6DecodeColumns columns, and whether it uses Lut6Tile::offsets.
  void (*decode)(const Lut6Rows& rows, const Value* table, void* panel);
  void (*multiply)(const Lut6Tile& tile);
};

struct Lut6Kernels {
  const char* name;
  // Channels of one panel, a multiple of kLut6GroupRows.
  std::size_t panel_channels;
  Lut6Arithmetic<std::int16_t> int16;
  Lut6Arithmetic<std::int8_t> int8;
};

// Plain C++, slow: what the others must equal bit for bit.
extern const Lut6Kernels kLut6ScalarKernels;
// The same with four groups in a panel, as AVX-512 has: shows on any machine that panels of either
// width are fed rightly.
extern const Lut6Kernels kLut6WideScalarKernels;
#if defined(__x86_64__)
extern const Lut6Kernels kLut6Avx2Kernels;
extern const Lut6Kernels kLut6AvxVnniKernels;
extern const Lut6Kernels kLut6Avx512Kernels;
#elif defined(__aarch64__)
extern const Lut6Kernels kLut6NeonKernels;
extern const Lut6Kernels kLut6NeonDotKernels;
extern const Lut6Kernels kLut6NeonI8mmKernels;
#endif

// The kernels that this processor can run, the fastest first and the scalar ones last.
std::span<const Lut6Kernels* const> supported_lut6_kernels();

// The first of them, or nullptr where there are only the scalar ones: float32 is faster then.
const Lut6Kernels* fastest_lut6_kernels();

}  // namespace clefkit
