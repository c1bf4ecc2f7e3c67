// AVX2. Compiled for the baseline; each function says what it needs, so that nothing here can leak
// into code that runs elsewhere.
#if defined(__x86_64__)

#include <immintrin.h>

#include "clefkit/kernels/lut6_kernels.h"
#include "clefkit/kernels/lut6_x86_tile.h"

#define LUT6_AVX2 __attribute__((target("avx2,fma")))

namespace clefkit {
namespace {

// Twelve bytes of each of two rows to 16 indices in each 128-bit lane.
LUT6_AVX2 inline __m256i unpack_indices(const std::uint8_t* low_row, const std::uint8_t* high_row) {
  const __m256i spread = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
  const __m256i bytes =
      _mm256_shuffle_epi8(_mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(high_row),
                                              reinterpret_cast<const __m128i*>(low_row)),
                          spread);
  const __m256i first = _mm256_and_si256(bytes, _mm256_set1_epi32(0x3F));
  const __m256i second = _mm256_and_si256(_mm256_slli_epi32(bytes, 2), _mm256_set1_epi32(0x3F00));
  const __m256i third = _mm256_and_si256(_mm256_slli_epi32(bytes, 4), _mm256_set1_epi32(0x3F0000));
  const __m256i fourth =
      _mm256_and_si256(_mm256_slli_epi32(bytes, 6), _mm256_set1_epi32(0x3F000000));
  return _mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, fourth));
}

// A table of 64 bytes for four byte shuffles: a shuffle gives 0 for a negative index, so quarter q
// holds its entries XORed with those of quarter q - 1, and index − 16 q undoes what came before.
struct ByteTable {
  __m256i quarters[4];
};

LUT6_AVX2 inline ByteTable make_byte_table(const std::uint8_t* entries) {
  ByteTable table;
  __m128i before = _mm_setzero_si128();
  for (int q = 0; q < 4; ++q) {
    const __m128i quarter = _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries + 16 * q));
    table.quarters[q] = _mm256_broadcastsi128_si256(_mm_xor_si128(quarter, before));
    before = quarter;
  }
  return table;
}

struct SplitIndices {
  __m256i quarters[4];
};

LUT6_AVX2 inline SplitIndices split_indices(__m256i indices) {
  return {{indices, _mm256_sub_epi8(indices, _mm256_set1_epi8(16)),
           _mm256_sub_epi8(indices, _mm256_set1_epi8(32)),
           _mm256_sub_epi8(indices, _mm256_set1_epi8(48))}};
}

LUT6_AVX2 inline __m256i look_up(const ByteTable& table, const SplitIndices& indices) {
  return _mm256_xor_si256(
      _mm256_xor_si256(_mm256_shuffle_epi8(table.quarters[0], indices.quarters[0]),
                       _mm256_shuffle_epi8(table.quarters[1], indices.quarters[1])),
      _mm256_xor_si256(_mm256_shuffle_epi8(table.quarters[2], indices.quarters[2]),
                       _mm256_shuffle_epi8(table.quarters[3], indices.quarters[3])));
}

LUT6_AVX2 void decode_int16(const Lut6Rows& rows, const std::int16_t* table, std::int16_t* panel) {
  std::uint8_t low[64], high[64];
  for (int i = 0; i < 64; ++i) {
    low[i] = static_cast<std::uint8_t>(table[i] & 0xFF);
    high[i] = static_cast<std::uint8_t>(table[i] >> 8 & 0xFF);
  }
  const ByteTable low_table = make_byte_table(low), high_table = make_byte_table(high);
  const std::size_t stride = rows.row_bytes;
  const std::uint8_t* packed = rows.packed;
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    // Rows r and r + 4 share a register, so that interleaving gives channels 0–7 and 8–15.
    __m256i a[8], b[8];
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint8_t* const row = packed + (i < 4 ? i : i + 4) * stride;
      a[i] = unpack_indices(row, row + 4 * stride);
    }
    // Transpose of pairs of columns: 8 rows by 8 pairs in each lane.
    for (int i = 0; i < 4; ++i) {
      b[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
      b[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
    }
    for (int i = 0; i < 4; ++i) {
      a[2 * i] = _mm256_unpacklo_epi16(b[i], b[i + 4]);
      a[2 * i + 1] = _mm256_unpackhi_epi16(b[i], b[i + 4]);
    }
    for (int i = 0; i < 4; ++i) {
      b[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
      b[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
    }
    for (int pair = 0; pair < 8; ++pair) {
      const SplitIndices indices = split_indices(b[pair]);
      const __m256i low_bytes = look_up(low_table, indices);
      const __m256i high_bytes = look_up(high_table, indices);
      __m256i* const out = reinterpret_cast<__m256i*>(panel + pair * 32);
      _mm256_store_si256(out, _mm256_unpacklo_epi8(low_bytes, high_bytes));
      _mm256_store_si256(out + 1, _mm256_unpackhi_epi8(low_bytes, high_bytes));
    }
    packed += kLut6DecodeColumns / 4 * 3;
    panel += kLut6DecodeColumns * kLut6GroupRows;
  }
}

// Weights in ymm12 and ymm13, products in ymm14 and ymm15.
#define AVX2_ZERO(m, a, b, ...) \
  "vpxor %%xmm" a ", %%xmm" a ", %%xmm" a "\n\tvpxor %%xmm" b ", %%xmm" b ", %%xmm" b "\n\t"
#define AVX2_START(n) LUT6_TOKENS_##n(AVX2_ZERO, )

#define AVX2_INT16_TOKEN(m, a, b, step, n) \
  "vpbroadcastd 4*" #m "+4*" #n "*" #step  \
  "(%[x]), %%ymm15\n\t"                    \
  "vpmaddwd %%ymm12, %%ymm15, %%ymm14\n\t" \
  "vpmaddwd %%ymm13, %%ymm15, %%ymm15\n\t" \
  "vpaddd %%ymm14, %%ymm" a ", %%ymm" a    \
  "\n\t"                                   \
  "vpaddd %%ymm15, %%ymm" b ", %%ymm" b "\n\t"
#define AVX2_INT16_STEP(step, n) \
  "vmovdqa 64*" #step            \
  "(%[w]), %%ymm12\n\t"          \
  "vmovdqa 64*" #step "+32(%[w]), %%ymm13\n\t" LUT6_TOKENS_##n(AVX2_INT16_TOKEN, step, n)
#define AVX2_INT16_STEPS(n) \
  AVX2_INT16_STEP(0, n)     \
  AVX2_INT16_STEP(1, n)     \
  AVX2_INT16_STEP(2, n) AVX2_INT16_STEP(3, n) "add $256, %[w]\n\tadd $16*" #n ", %[x]\n\t"

#define AVX2_FLUSH(m, a, b, ...)                        \
  "vbroadcastss 4*" #m                                  \
  "(%[scales]), %%ymm14\n\t"                            \
  "vcvtdq2ps %%ymm" a ", %%ymm" a                       \
  "\n\t"                                                \
  "vcvtdq2ps %%ymm" b ", %%ymm" b                       \
  "\n\t"                                                \
  "vfmadd213ps 64*" #m "(%[sums]), %%ymm14, %%ymm" a    \
  "\n\t"                                                \
  "vfmadd213ps 64*" #m "+32(%[sums]), %%ymm14, %%ymm" b \
  "\n\t"                                                \
  "vmovaps %%ymm" a ", 64*" #m                          \
  "(%[sums])\n\t"                                       \
  "vmovaps %%ymm" b ", 64*" #m "+32(%[sums])\n\t"
#define AVX2_END(n) LUT6_TOKENS_##n(AVX2_FLUSH, ) "add $4*" #n ", %[scales]\n\t"

#define AVX2_CLOBBERS                                                                      \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define AVX2_INT16_TILE(n)                                                           \
  LUT6_DEFINE_TILE(LUT6_AVX2, tile_int16, n, AVX2_START, AVX2_INT16_STEPS, AVX2_END, \
                   kLut6Int16BlockColumns / 8, AVX2_CLOBBERS)
AVX2_INT16_TILE(1)
AVX2_INT16_TILE(2)
AVX2_INT16_TILE(3)
AVX2_INT16_TILE(4)
AVX2_INT16_TILE(5)
AVX2_INT16_TILE(6)

void multiply_int16(const Lut6Tile& tile) {
  static constexpr void (*kTiles[])(const Lut6Tile&) = {tile_int16_1, tile_int16_2, tile_int16_3,
                                                        tile_int16_4, tile_int16_5, tile_int16_6};
  kTiles[tile.tokens - 1](tile);
}

}  // namespace

const Lut6Kernels kLut6Avx2Kernels = {
    .name = "AVX2",
    .panel_channels = kLut6GroupRows,
    .decode_int16 = decode_int16,
    .multiply_int16 = multiply_int16,
};

}  // namespace clefkit

#endif  // defined(__x86_64__)
