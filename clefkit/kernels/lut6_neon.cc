// NEON: alone, with the dot products of ARMv8.2, and with the int8 matrix products of ARMv8.6.
// Compiled for the baseline; each function says what it needs beyond, so that nothing here can leak
// into code that runs elsewhere. Clang before 16 has some of the intrinsics only where a whole file
// is compiled for their instructions.
#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>
#include <utility>

#include "clefkit/kernels/lut6_kernels.h"

#define LUT6_INLINE inline __attribute__((always_inline))
#define LUT6_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#define LUT6_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))

namespace clefkit {
namespace {

// Bytes of one table entry or index in all channels of a group.
static_assert(kLut6GroupRows == sizeof(uint8x16_t));
// Vectors of int32 that hold a sum for each channel.
constexpr std::size_t kSumVectors = kLut6GroupRows / 4;

// ---- Decoding. Each kind of product has an order of the panel that it reads without shuffling.

// Twelve bytes of a row to 16 indices.
LUT6_INLINE uint8x16_t unpack_indices(const std::uint8_t* row) {
  alignas(16) static constexpr std::uint8_t kSpread[16] = {0, 1, 2, 255, 3, 4,  5,  255,
                                                           6, 7, 8, 255, 9, 10, 11, 255};
  const uint32x4_t bits = vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(row), vld1q_u8(kSpread)));
  uint32x4_t indices = vbslq_u32(vdupq_n_u32(0xFF), bits, vshlq_n_u32(bits, 2));
  indices = vbslq_u32(vdupq_n_u32(0xFFFF), indices, vshlq_n_u32(bits, 4));
  indices = vbslq_u32(vdupq_n_u32(0xFFFFFF), indices, vshlq_n_u32(bits, 6));
  return vandq_u8(vreinterpretq_u8_u32(indices), vdupq_n_u8(0x3F));
}

LUT6_INLINE void interleave(const uint8x16_t (&from)[16], uint8x16_t (&to)[16]) {
  for (std::size_t i = 0; i < 8; ++i) {
    to[2 * i] = vzip1q_u8(from[i], from[i + 8]);
    to[2 * i + 1] = vzip2q_u8(from[i], from[i + 8]);
  }
}

// [16 columns][16 rows] of indices, from rows `stride` apart.
LUT6_INLINE void unpack_columns(const std::uint8_t* packed, std::size_t stride,
                                uint8x16_t (&columns)[16]) {
  uint8x16_t other[16];
  for (std::size_t row = 0; row < 16; ++row) columns[row] = unpack_indices(packed + row * stride);
  interleave(columns, other);
  interleave(other, columns);
  interleave(columns, other);
  interleave(other, columns);
}

// Panels [columns][channels].
void decode_columns_int16(const Lut6Rows& rows, const std::int16_t* table, void* panel) {
  const auto* const entries = reinterpret_cast<const std::uint8_t*>(table);
  uint8x16x4_t low, high;
  for (std::size_t i = 0; i < 4; ++i) {
    const uint8x16x2_t bytes = vld2q_u8(entries + 32 * i);
    low.val[i] = bytes.val[0];
    high.val[i] = bytes.val[1];
  }
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<std::uint8_t*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    uint8x16_t indices[16];
    unpack_columns(packed, rows.row_bytes, indices);
    for (const uint8x16_t index : indices) {
      const uint8x16x2_t bytes = {{vqtbl4q_u8(low, index), vqtbl4q_u8(high, index)}};
      vst2q_u8(out, bytes);
      out += kLut6GroupRows * sizeof(std::int16_t);
    }
    packed += kLut6DecodeColumns / 4 * 3;
  }
}

LUT6_INLINE uint8x16x4_t load_table(const std::int8_t* table) {
  return vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(table));
}

void decode_columns_int8(const Lut6Rows& rows, const std::int8_t* table, void* panel) {
  const uint8x16x4_t entries = load_table(table);
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<std::uint8_t*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    uint8x16_t indices[16];
    unpack_columns(packed, rows.row_bytes, indices);
    for (const uint8x16_t index : indices) {
      vst1q_u8(out, vqtbl4q_u8(entries, index));
      out += kLut6GroupRows;
    }
    packed += kLut6DecodeColumns / 4 * 3;
  }
}

// Panels [columns / 4][channels][4].
void decode_fours(const Lut6Rows& rows, const std::int8_t* table, void* panel) {
  const uint8x16x4_t entries = load_table(table);
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<std::uint8_t*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    for (std::size_t row = 0; row < kLut6GroupRows; row += 4) {
      uint32x4_t a[4], b[4];
      for (std::size_t i = 0; i < 4; ++i) {
        a[i] = vreinterpretq_u32_u8(unpack_indices(packed + (row + i) * rows.row_bytes));
      }
      for (std::size_t i = 0; i < 2; ++i) {
        b[2 * i] = vzip1q_u32(a[i], a[i + 2]);
        b[2 * i + 1] = vzip2q_u32(a[i], a[i + 2]);
      }
      for (std::size_t i = 0; i < 2; ++i) {
        a[2 * i] = vzip1q_u32(b[i], b[i + 2]);
        a[2 * i + 1] = vzip2q_u32(b[i], b[i + 2]);
      }
      for (std::size_t four = 0; four < 4; ++four) {
        vst1q_u8(out + four * 4 * kLut6GroupRows + row * 4,
                 vqtbl4q_u8(entries, vreinterpretq_u8_u32(a[four])));
      }
    }
    packed += kLut6DecodeColumns / 4 * 3;
    out += kLut6DecodeColumns * kLut6GroupRows;
  }
}

// Panels [columns / 8][channels][8].
void decode_eights(const Lut6Rows& rows, const std::int8_t* table, void* panel) {
  const uint8x16x4_t entries = load_table(table);
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<std::uint8_t*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    for (std::size_t row = 0; row < kLut6GroupRows; row += 2) {
      const std::uint8_t* const pair = packed + row * rows.row_bytes;
      const uint64x2_t even = vreinterpretq_u64_u8(vqtbl4q_u8(entries, unpack_indices(pair)));
      const uint64x2_t odd =
          vreinterpretq_u64_u8(vqtbl4q_u8(entries, unpack_indices(pair + rows.row_bytes)));
      vst1q_u8(out + row * 8, vreinterpretq_u8_u64(vzip1q_u64(even, odd)));
      vst1q_u8(out + (kLut6GroupRows + row) * 8, vreinterpretq_u8_u64(vzip2q_u64(even, odd)));
    }
    packed += kLut6DecodeColumns / 4 * 3;
    out += kLut6DecodeColumns * kLut6GroupRows;
  }
}

// ---- Multiplying. Sums of a tile stay in registers, up to 24 of the 32, until their block ends.
// Weights keep their sign here, so the offsets of a tile are not needed.

template <std::size_t kTokens>
using Dots = int32x4_t[kTokens][kSumVectors];

template <std::size_t kTokens>
LUT6_INLINE void end_block(const Dots<kTokens>& dots, const float* scales, float* sums) {
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t i = 0; i < kSumVectors; ++i) {
      float* const sum = sums + token * kLut6GroupRows + 4 * i;
      vst1q_f32(sum, vfmaq_n_f32(vld1q_f32(sum), vcvtq_f32_s32(dots[token][i]), scales[token]));
    }
  }
}

// Products take activations from lanes of vectors. As many columns are computed at once as fill
// whole vectors with the activations of all tokens.
template <std::size_t kTokens>
constexpr std::size_t kVectorsAtOnce = kTokens % 2 == 0 ? kTokens / 2 : kTokens;

// g++ 12 would load many weights ahead and spill sums to make room for them.
LUT6_INLINE void keep_loads_apart() { asm volatile("" ::: "memory"); }

// The baseline multiplies int16, eight channels and one column at a time; int8 are widened.
LUT6_INLINE int16x8_t load_eight(const std::int16_t* values) { return vld1q_s16(values); }
LUT6_INLINE int16x8_t load_eight(const std::int8_t* values) { return vmovl_s8(vld1_s8(values)); }

// Where [columns / depth][tokens][depth] has the activation of a column and token.
template <typename Value>
constexpr std::size_t place_of(std::size_t column, std::size_t token, std::size_t tokens) {
  constexpr std::size_t kDepth = kLut6Depth<Value>;
  return (column / kDepth * tokens + token) * kDepth + column % kDepth;
}

template <std::size_t kPlace>
LUT6_INLINE void add_column(const int16x8_t* x, int16x8_t low, int16x8_t high, int32x4_t* dots) {
  const int16x8_t values = x[kPlace / 8];
  dots[0] = vmlal_laneq_s16(dots[0], vget_low_s16(low), values, kPlace % 8);
  dots[1] = vmlal_high_laneq_s16(dots[1], low, values, kPlace % 8);
  dots[2] = vmlal_laneq_s16(dots[2], vget_low_s16(high), values, kPlace % 8);
  dots[3] = vmlal_high_laneq_s16(dots[3], high, values, kPlace % 8);
}

template <std::size_t kColumn, typename Value, std::size_t... kToken>
LUT6_INLINE void add_tokens(const int16x8_t* x, const Value* panel, Dots<sizeof...(kToken)>& dots,
                            std::index_sequence<kToken...>) {
  const int16x8_t low = load_eight(panel + kColumn * kLut6GroupRows);
  const int16x8_t high = load_eight(panel + kColumn * kLut6GroupRows + 8);
  (add_column<place_of<Value>(kColumn, kToken, sizeof...(kToken))>(x, low, high, dots[kToken]),
   ...);
}

template <std::size_t kTokens, typename Value, std::size_t... kColumn>
LUT6_INLINE void add_columns(const int16x8_t* x, const Value* panel, Dots<kTokens>& dots,
                             std::index_sequence<kColumn...>) {
  (add_tokens<kColumn>(x, panel, dots, std::make_index_sequence<kTokens>()), ...);
}

template <typename Value, std::size_t kTokens>
void multiply_tile(const Lut6Tile& tile) {
  constexpr std::size_t kVectors = kVectorsAtOnce<kTokens>;
  constexpr std::size_t kColumns = kVectors * 8 / kTokens;
  const auto* panel = static_cast<const Value*>(tile.panel);
  const auto* x = static_cast<const Value*>(tile.x);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    Dots<kTokens> dots = {};
    for (std::size_t column = 0; column < kLut6BlockColumns<Value>; column += kColumns) {
      int16x8_t values[kVectors];
      for (std::size_t i = 0; i < kVectors; ++i) values[i] = load_eight(x + 8 * i);
      add_columns<kTokens>(values, panel, dots, std::make_index_sequence<kColumns>());
      panel += kColumns * kLut6GroupRows;
      x += kColumns * kTokens;
    }
    end_block<kTokens>(dots, tile.scales + block * kTokens, tile.sums);
  }
}

template <typename Value>
void multiply(const Lut6Tile& tile) {
  static constexpr void (*kTiles[])(const Lut6Tile&) = {
      multiply_tile<Value, 1>, multiply_tile<Value, 2>, multiply_tile<Value, 3>,
      multiply_tile<Value, 4>, multiply_tile<Value, 5>, multiply_tile<Value, 6>};
  kTiles[tile.tokens - 1](tile);
}

// Dot products: four channels and four columns at a time.
template <std::size_t kPlace>
LUT6_DOT LUT6_INLINE void add_dot(const int8x16_t* x, int8x16_t w, int32x4_t& dot) {
  dot = vdotq_laneq_s32(dot, w, x[kPlace / 4], kPlace % 4);
}

template <std::size_t kStep, std::size_t... kToken>
LUT6_DOT LUT6_INLINE void add_four(const int8x16_t* x, int8x16_t w, std::size_t i,
                                   Dots<sizeof...(kToken)>& dots, std::index_sequence<kToken...>) {
  (add_dot<kStep * sizeof...(kToken) + kToken>(x, w, dots[kToken][i]), ...);
  keep_loads_apart();
}

template <std::size_t kStep, std::size_t kTokens>
LUT6_DOT LUT6_INLINE void add_step(const int8x16_t* x, const std::int8_t* panel,
                                   Dots<kTokens>& dots) {
  for (std::size_t i = 0; i < kSumVectors; ++i) {
    add_four<kStep>(x, vld1q_s8(panel + i * sizeof(int8x16_t)), i, dots,
                    std::make_index_sequence<kTokens>());
  }
}

template <std::size_t kTokens, std::size_t... kStep>
LUT6_DOT LUT6_INLINE void add_fours(const int8x16_t* x, const std::int8_t* panel,
                                    Dots<kTokens>& dots, std::index_sequence<kStep...>) {
  (add_step<kStep, kTokens>(x, panel + kStep * 4 * kLut6GroupRows, dots), ...);
}

template <std::size_t kTokens>
LUT6_DOT void multiply_tile_dot(const Lut6Tile& tile) {
  constexpr std::size_t kVectors = kVectorsAtOnce<kTokens>;
  constexpr std::size_t kSteps = kVectors * 4 / kTokens;
  const auto* panel = static_cast<const std::int8_t*>(tile.panel);
  const auto* x = static_cast<const std::int8_t*>(tile.x);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    Dots<kTokens> dots = {};
    for (std::size_t step = 0; step < kLut6BlockColumns<std::int8_t> / 4; step += kSteps) {
      int8x16_t values[kVectors];
      for (std::size_t i = 0; i < kVectors; ++i) values[i] = vld1q_s8(x + 16 * i);
      add_fours<kTokens>(values, panel, dots, std::make_index_sequence<kSteps>());
      panel += kSteps * 4 * kLut6GroupRows;
      x += kSteps * 4 * kTokens;
    }
    end_block<kTokens>(dots, tile.scales + block * kTokens, tile.sums);
  }
}

void multiply_dot(const Lut6Tile& tile) {
  static constexpr void (*kTiles[])(const Lut6Tile&) = {multiply_tile_dot<1>, multiply_tile_dot<2>,
                                                        multiply_tile_dot<3>, multiply_tile_dot<4>,
                                                        multiply_tile_dot<5>, multiply_tile_dot<6>};
  kTiles[tile.tokens - 1](tile);
}

// Matrix products: two tokens, two channels and eight columns at a time. The last of an odd number
// of tokens is computed twice.
template <std::size_t kTokens>
LUT6_INLINE int8x16_t load_token_pair(const std::int8_t* x, std::size_t first) {
  const std::int8_t* const low = x + first * 4;
  const std::int8_t* const high = low + kTokens * 4;
  if (first + 1 < kTokens) {
    const int32x4_t columns = vreinterpretq_s32_s8(vcombine_s8(vld1_s8(low), vld1_s8(high)));
    return vreinterpretq_s8_s32(vuzp1q_s32(columns, vextq_s32(columns, columns, 1)));
  }
  std::int32_t four[2];
  std::memcpy(&four[0], low, 4);
  std::memcpy(&four[1], high, 4);
  const int32x2_t eight = vset_lane_s32(four[1], vdup_n_s32(four[0]), 1);
  return vreinterpretq_s8_s32(vcombine_s32(eight, eight));
}

template <std::size_t kTokens>
LUT6_I8MM void multiply_tile_i8mm(const Lut6Tile& tile) {
  constexpr std::size_t kPairs = (kTokens + 1) / 2;
  const auto* panel = static_cast<const std::int8_t*>(tile.panel);
  const auto* x = static_cast<const std::int8_t*>(tile.x);
  for (std::size_t block = 0; block < tile.blocks; ++block) {
    int32x4_t squares[kPairs][kLut6GroupRows / 2] = {};  // [tokens of a pair][channels of a pair]
    for (std::size_t column = 0; column < kLut6BlockColumns<std::int8_t>; column += 8) {
      int8x16_t values[kPairs];
      for (std::size_t i = 0; i < kPairs; ++i) values[i] = load_token_pair<kTokens>(x, 2 * i);
      for (std::size_t channels = 0; channels < kLut6GroupRows / 2; ++channels) {
        const int8x16_t w = vld1q_s8(panel + channels * sizeof(int8x16_t));
        for (std::size_t i = 0; i < kPairs; ++i) {
          squares[i][channels] = vmmlaq_s32(squares[i][channels], values[i], w);
        }
        keep_loads_apart();
      }
      panel += 8 * kLut6GroupRows;
      x += 8 * kTokens;
    }
    Dots<kTokens> dots;
    for (std::size_t token = 0; token < kTokens; ++token) {
      for (std::size_t i = 0; i < kSumVectors; ++i) {
        const int64x2_t first = vreinterpretq_s64_s32(squares[token / 2][2 * i]);
        const int64x2_t second = vreinterpretq_s64_s32(squares[token / 2][2 * i + 1]);
        dots[token][i] = vreinterpretq_s32_s64(token % 2 == 0 ? vzip1q_s64(first, second)
                                                              : vzip2q_s64(first, second));
      }
    }
    end_block<kTokens>(dots, tile.scales + block * kTokens, tile.sums);
  }
}

void multiply_i8mm(const Lut6Tile& tile) {
  static constexpr void (*kTiles[])(const Lut6Tile&) = {
      multiply_tile_i8mm<1>, multiply_tile_i8mm<2>, multiply_tile_i8mm<3>,
      multiply_tile_i8mm<4>, multiply_tile_i8mm<5>, multiply_tile_i8mm<6>};
  kTiles[tile.tokens - 1](tile);
}

constexpr Lut6Arithmetic<std::int16_t> kInt16 = {decode_columns_int16, multiply<std::int16_t>};

}  // namespace

const Lut6Kernels kLut6NeonKernels = {
    .name = "NEON",
    .panel_channels = kLut6GroupRows,
    .int16 = kInt16,
    .int8 = {decode_columns_int8, multiply<std::int8_t>},
};

const Lut6Kernels kLut6NeonDotKernels = {
    .name = "NEON with dot products",
    .panel_channels = kLut6GroupRows,
    .int16 = kInt16,
    .int8 = {decode_fours, multiply_dot},
};

const Lut6Kernels kLut6NeonI8mmKernels = {
    .name = "NEON with i8mm",
    .panel_channels = kLut6GroupRows,
    .int16 = kInt16,
    .int8 = {decode_eights, multiply_i8mm},
};

}  // namespace clefkit

#endif  // defined(__aarch64__)
