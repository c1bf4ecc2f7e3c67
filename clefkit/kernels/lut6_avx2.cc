// AVX2 and AVX-VNNI. Compiled for the baseline; each function says what it needs, so that nothing
// here can leak into code that runs elsewhere.
#if defined(__x86_64__)

#include <immintrin.h>

#include "clefkit/kernels/lut6_kernels.h"
#include "clefkit/kernels/lut6_x86_tile.h"

#define LUT6_AVX2 __attribute__((target("avx2,fma")))
#define LUT6_AVX_VNNI __attribute__((target("avx2,fma,avxvnni")))

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

LUT6_AVX2 void decode_int16(const Lut6Rows& rows, const std::int16_t* table, void* panel) {
  auto* out = static_cast<__m256i*>(panel);
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
      _mm256_store_si256(out++, _mm256_unpacklo_epi8(low_bytes, high_bytes));
      _mm256_store_si256(out++, _mm256_unpackhi_epi8(low_bytes, high_bytes));
    }
    packed += kLut6DecodeColumns / 4 * 3;
  }
}

LUT6_AVX2 void decode_int8(const Lut6Rows& rows, const std::int8_t* table, void* panel) {
  std::uint8_t entries[64];
  for (int i = 0; i < 64; ++i) {
    entries[i] = static_cast<std::uint8_t>(table[i] + kLut6WeightOffset);
  }
  const ByteTable byte_table = make_byte_table(entries);
  const std::size_t stride = rows.row_bytes;
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<__m256i*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    for (std::size_t half = 0; half < 2; ++half) {
      // Transpose of fours of columns: channels 8 · half up to 8 · half + 7.
      __m256i a[4], b[4];
      for (std::size_t i = 0; i < 4; ++i) {
        const std::uint8_t* const row = packed + (8 * half + i) * stride;
        a[i] = unpack_indices(row, row + 4 * stride);
      }
      for (int i = 0; i < 2; ++i) {
        b[2 * i] = _mm256_unpacklo_epi32(a[i], a[i + 2]);
        b[2 * i + 1] = _mm256_unpackhi_epi32(a[i], a[i + 2]);
      }
      for (int i = 0; i < 2; ++i) {
        a[2 * i] = _mm256_unpacklo_epi32(b[i], b[i + 2]);
        a[2 * i + 1] = _mm256_unpackhi_epi32(b[i], b[i + 2]);
      }
      for (std::size_t four = 0; four < 4; ++four) {
        _mm256_store_si256(out + 2 * four + half, look_up(byte_table, split_indices(a[four])));
      }
    }
    packed += kLut6DecodeColumns / 4 * 3;
    out += kLut6DecodeColumns * kLut6GroupRows / sizeof(__m256i);
  }
}

#define AVX2_CLOBBERS                                                                      \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define AVX2_NOTHING(n)

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

// int16. Weights in ymm12 and ymm13, products in ymm14 and ymm15.
#define AVX2_ZERO(m, a, b, ...) \
  "vpxor %%xmm" a ", %%xmm" a ", %%xmm" a "\n\tvpxor %%xmm" b ", %%xmm" b ", %%xmm" b "\n\t"
#define AVX2_INT16_START(n) LUT6_TOKENS_##n(AVX2_ZERO, )
#define AVX2_INT16_TOKEN(m, a, b, c, d, step, n) \
  "vpbroadcastd 4*" #m "+4*" #n "*" #step        \
  "(%[x]), %%ymm15\n\t"                          \
  "vpmaddwd %%ymm12, %%ymm15, %%ymm14\n\t"       \
  "vpmaddwd %%ymm13, %%ymm15, %%ymm15\n\t"       \
  "vpaddd %%ymm14, %%ymm" a ", %%ymm" a          \
  "\n\t"                                         \
  "vpaddd %%ymm15, %%ymm" b ", %%ymm" b "\n\t"
#define AVX2_INT16_STEP(step, n) \
  "vmovdqa 64*" #step            \
  "(%[w]), %%ymm12\n\t"          \
  "vmovdqa 64*" #step "+32(%[w]), %%ymm13\n\t" LUT6_TOKENS_##n(AVX2_INT16_TOKEN, step, n)
#define AVX2_INT16_STEPS(n) \
  AVX2_INT16_STEP(0, n)     \
  AVX2_INT16_STEP(1, n)     \
  AVX2_INT16_STEP(2, n) AVX2_INT16_STEP(3, n) "add $4*64, %[w]\n\tadd $4*4*" #n ", %[x]\n\t"
LUT6_DEFINE_TILES(LUT6_AVX2, multiply_int16, AVX2_NOTHING, AVX2_INT16_START, AVX2_INT16_STEPS,
                  kLut6BlockColumns<std::int16_t> / 8, AVX2_END, AVX2_NOTHING, AVX2_CLOBBERS)

// int8. Quantization keeps the sum of the four products that meet in an int16 within its range, so
// that two vpmaddubsw share one vpmaddwd: multiplications are what limits this loop.
#define AVX2_OFFSET(m, a, b, ...) \
  "vpbroadcastd 4*" #m "(%[offsets]), %%ymm" a "\n\tvmovdqa %%ymm" a ", %%ymm" b "\n\t"
#define AVX2_INT8_START(n) LUT6_TOKENS_##n(AVX2_OFFSET, ) "add $4*" #n ", %[offsets]\n\t"
#define AVX2_INT8_PAIR(m, acc, step, n)            \
  "vpbroadcastd 4*" #m "+8*" #n "*" #step          \
  "(%[x]), %%ymm14\n\t"                            \
  "vpbroadcastd 4*" #m "+8*" #n "*" #step "+4*" #n \
  "(%[x]), %%ymm15\n\t"                            \
  "vpmaddubsw %%ymm14, %%ymm12, %%ymm14\n\t"       \
  "vpmaddubsw %%ymm15, %%ymm13, %%ymm15\n\t"       \
  "vpaddw %%ymm14, %%ymm15, %%ymm15\n\t"           \
  "vpmaddwd %[ones], %%ymm15, %%ymm15\n\t"         \
  "vpaddd %%ymm15, %%ymm" acc ", %%ymm" acc "\n\t"
#define AVX2_INT8_LOW(m, a, b, c, d, step, n) AVX2_INT8_PAIR(m, a, step, n)
#define AVX2_INT8_HIGH(m, a, b, c, d, step, n) AVX2_INT8_PAIR(m, b, step, n)
#define AVX2_INT8_STEP(step, n)                                  \
  "vmovdqa 128*" #step                                           \
  "(%[w]), %%ymm12\n\t"                                          \
  "vmovdqa 128*" #step "+64(%[w]), %%ymm13\n\t" LUT6_TOKENS_##n( \
      AVX2_INT8_LOW, step, n) "vmovdqa 128*" #step               \
                              "+32(%[w]), %%ymm12\n\t"           \
                              "vmovdqa 128*" #step               \
                              "+96(%[w]), %%ymm13\n\t" LUT6_TOKENS_##n(AVX2_INT8_HIGH, step, n)
#define AVX2_INT8_STEPS(n) \
  AVX2_INT8_STEP(0, n) AVX2_INT8_STEP(1, n) "add $2*128, %[w]\n\tadd $2*8*" #n ", %[x]\n\t"
LUT6_DEFINE_TILES(LUT6_AVX2, multiply_int8, AVX2_NOTHING, AVX2_INT8_START, AVX2_INT8_STEPS,
                  kLut6BlockColumns<std::int8_t> / 16, AVX2_END, AVX2_NOTHING, AVX2_CLOBBERS)

// The same with AVX-VNNI, which multiplies and adds at once, and four bytes without an int16
// between.
// "{vex}" keeps assemblers from the AVX-512 encoding, which these processors may not have.
#define VNNI_TOKEN(m, a, b, c, d, step, n, first, second) \
  "vpbroadcastd 4*" #m "+4*" #n "*" #step                 \
  "(%[x]), %%ymm15\n\t"                                   \
  "%{vex%} " first ", %%ymm" a                            \
  "\n\t"                                                  \
  "%{vex%} " second ", %%ymm" b "\n\t"
#define VNNI_STEP(step, n, first, second) \
  "vmovdqa 64*" #step                     \
  "(%[w]), %%ymm12\n\t"                   \
  "vmovdqa 64*" #step "+32(%[w]), %%ymm13\n\t" LUT6_TOKENS_##n(VNNI_TOKEN, step, n, first, second)
#define VNNI_STEPS(n, first, second)                                                              \
  VNNI_STEP(0, n, first, second)                                                                  \
  VNNI_STEP(1, n, first, second)                                                                  \
  VNNI_STEP(2, n, first, second) VNNI_STEP(3, n, first, second) "add $4*64, %[w]\n\tadd $4*4*" #n \
                                                                ", %[x]\n\t"
#define VNNI_INT16_STEPS(n) VNNI_STEPS(n, "vpdpwssd %%ymm12, %%ymm15", "vpdpwssd %%ymm13, %%ymm15")
#define VNNI_INT8_STEPS(n) VNNI_STEPS(n, "vpdpbusd %%ymm15, %%ymm12", "vpdpbusd %%ymm15, %%ymm13")
LUT6_DEFINE_TILES(LUT6_AVX_VNNI, multiply_int16_vnni, AVX2_NOTHING, AVX2_INT16_START,
                  VNNI_INT16_STEPS, kLut6BlockColumns<std::int16_t> / 8, AVX2_END, AVX2_NOTHING,
                  AVX2_CLOBBERS)
LUT6_DEFINE_TILES(LUT6_AVX_VNNI, multiply_int8_vnni, AVX2_NOTHING, AVX2_INT8_START, VNNI_INT8_STEPS,
                  kLut6BlockColumns<std::int8_t> / 16, AVX2_END, AVX2_NOTHING, AVX2_CLOBBERS)

}  // namespace

const Lut6Kernels kLut6Avx2Kernels = {
    .name = "AVX2",
    .panel_channels = kLut6GroupRows,
    .int16 = {decode_int16, multiply_int16},
    .int8 = {decode_int8, multiply_int8},
};

const Lut6Kernels kLut6AvxVnniKernels = {
    .name = "AVX-VNNI",
    .panel_channels = kLut6GroupRows,
    .int16 = {decode_int16, multiply_int16_vnni},
    .int8 = {decode_int8, multiply_int8_vnni},
};

}  // namespace clefkit

#endif  // defined(__x86_64__)
