// AVX-512 with VBMI and VNNI: Ice Lake, Zen 4 and later. Compiled for the baseline; each function
// says what it needs, so that nothing here can leak into code that runs elsewhere.
#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // In g++ 12's own header.
#endif
#include <immintrin.h>

#include "clefkit/kernels/lut6_kernels.h"
#include "clefkit/kernels/lut6_x86_tile.h"

#define LUT6_AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vnni,avx2,fma")))

namespace clefkit {
namespace {

// Four groups side by side.
constexpr std::size_t kPanelChannels = 4 * kLut6GroupRows;
constexpr std::size_t kStepVectors = kPanelChannels * sizeof(std::int32_t) / sizeof(__m512i);

// Twelve bytes of rows r, r + 4, r + 8 and r + 12, a row in each 128-bit lane: 8 indices in the
// lower 48 bits of each 64.
LUT6_AVX512 inline __m512i load_rows(const std::uint8_t* row, std::size_t stride) {
  __m512i bytes = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
  bytes = _mm512_inserti32x4(
      bytes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 4 * stride)), 1);
  bytes = _mm512_inserti32x4(
      bytes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 8 * stride)), 2);
  bytes = _mm512_inserti32x4(
      bytes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 12 * stride)), 3);
  const __m128i spread = _mm_setr_epi8(0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1);
  return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(spread));
}

// Of 32-bit elements, four vectors by four elements in each lane: rows 4l + i become row order.
LUT6_AVX512 inline void transpose(__m512i (&v)[4]) {
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

// The look-ups below ignore the bits above the six of an index, so neighbours may stay there.
LUT6_AVX512 void decode_int16(const Lut6Rows& rows, const std::int16_t* table, void* panel) {
  const __m512i low_entries = _mm512_loadu_si512(table);
  const __m512i high_entries = _mm512_loadu_si512(table + 32);
  // Bit offsets of indices 0–3 and 4–7 of each 64 bits, for the low bytes of 16-bit elements.
  const __m512i first_four = _mm512_set1_epi64(0x0012000C00060000);
  const __m512i last_four = _mm512_set1_epi64(0x002A0024001E0018);
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<__m512i*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    __m512i first[4], last[4];
    for (std::size_t i = 0; i < 4; ++i) {
      const __m512i bits = load_rows(packed + i * rows.row_bytes, rows.row_bytes);
      first[i] = _mm512_multishift_epi64_epi8(first_four, bits);
      last[i] = _mm512_multishift_epi64_epi8(last_four, bits);
    }
    transpose(first);  // pairs 0, 1, 4 and 5 of columns
    transpose(last);   // pairs 2, 3, 6 and 7
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t pair = i % 2 + i / 2 * 4;
      _mm512_store_si512(out + pair * kStepVectors,
                         _mm512_permutex2var_epi16(low_entries, first[i], high_entries));
      _mm512_store_si512(out + (pair + 2) * kStepVectors,
                         _mm512_permutex2var_epi16(low_entries, last[i], high_entries));
    }
    packed += kLut6DecodeColumns / 4 * 3;
    out += kLut6DecodeColumns / kLut6Depth<std::int16_t> * kStepVectors;
  }
}

LUT6_AVX512 void decode_int8(const Lut6Rows& rows, const std::int8_t* table, void* panel) {
  const __m512i entries = _mm512_xor_si512(_mm512_loadu_si512(table),
                                           _mm512_set1_epi8(static_cast<char>(kLut6WeightOffset)));
  const __m512i bit_offsets = _mm512_set1_epi64(0x2A241E18120C0600);
  const std::uint8_t* packed = rows.packed;
  auto* out = static_cast<__m512i*>(panel);
  for (std::size_t column = 0; column < rows.columns; column += kLut6DecodeColumns) {
    __m512i indices[4];
    for (std::size_t i = 0; i < 4; ++i) {
      indices[i] = _mm512_multishift_epi64_epi8(
          bit_offsets, load_rows(packed + i * rows.row_bytes, rows.row_bytes));
    }
    transpose(indices);
    for (std::size_t i = 0; i < 4; ++i) {
      _mm512_store_si512(out + i * kStepVectors, _mm512_permutexvar_epi8(indices[i], entries));
    }
    packed += kLut6DecodeColumns / 4 * 3;
    out += kLut6DecodeColumns / kLut6Depth<std::int8_t> * kStepVectors;
  }
}

// int16: integer sums in registers 0 to 23, four of a token, weights in 24 to 27. With half as many
// sums, each product hardly has time to end before the next one to its sum begins.
#define AVX512_CLOBBERS                                                                         \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",      \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", \
      "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28"
#define AVX512_NOTHING(n)

#define AVX512_FLUSH_ONE(m, sums, i)                               \
  "vcvtdq2ps %%zmm" sums ", %%zmm" sums                            \
  "\n\t"                                                           \
  "vfmadd213ps 256*" #m "+64*" #i "(%[sums]), %%zmm28, %%zmm" sums \
  "\n\t"                                                           \
  "vmovaps %%zmm" sums ", 256*" #m "+64*" #i "(%[sums])\n\t"
#define AVX512_FLUSH(m, a, b, c, d, ...)                                    \
  "vbroadcastss 4*" #m "(%[scales]), %%zmm28\n\t" AVX512_FLUSH_ONE(m, a, 0) \
      AVX512_FLUSH_ONE(m, b, 1) AVX512_FLUSH_ONE(m, c, 2) AVX512_FLUSH_ONE(m, d, 3)
#define AVX512_END(n) LUT6_TOKENS_##n(AVX512_FLUSH, ) "add $4*" #n ", %[scales]\n\t"

#define AVX512_TOKEN(m, a, b, c, d, step, n, dot)                                                \
  "vpbroadcastd 4*" #m "+4*" #n "*" #step "(%[x]), %%zmm28\n\t" dot(24, a) dot(25, b) dot(26, c) \
      dot(27, d)
#define AVX512_WEIGHTS(step) \
  "vmovdqa64 256*" #step     \
  "(%[w]), %%zmm24\n\t"      \
  "vmovdqa64 256*" #step     \
  "+64(%[w]), %%zmm25\n\t"   \
  "vmovdqa64 256*" #step     \
  "+128(%[w]), %%zmm26\n\t"  \
  "vmovdqa64 256*" #step "+192(%[w]), %%zmm27\n\t"
#define AVX512_STEP(step, n, dot) AVX512_WEIGHTS(step) LUT6_TOKENS_##n(AVX512_TOKEN, step, n, dot)
#define AVX512_STEPS(n, dot) \
  AVX512_STEP(0, n, dot)     \
  AVX512_STEP(1, n, dot) "add $2*256, %[w]\n\tadd $2*4*" #n ", %[x]\n\t"

#define AVX512_ZERO_ONE(sums) "vpxord %%xmm" sums ", %%xmm" sums ", %%xmm" sums "\n\t"
#define AVX512_ZERO(m, a, b, c, d, ...) \
  AVX512_ZERO_ONE(a) AVX512_ZERO_ONE(b) AVX512_ZERO_ONE(c) AVX512_ZERO_ONE(d)
#define AVX512_INT16_START(n) LUT6_TOKENS_##n(AVX512_ZERO, )
#define AVX512_INT16_DOT(w, sums) "vpdpwssd %%zmm" #w ", %%zmm28, %%zmm" sums "\n\t"
#define AVX512_INT16_STEPS(n) AVX512_STEPS(n, AVX512_INT16_DOT)
LUT6_DEFINE_TILES(LUT6_AVX512, multiply_int16, AVX512_NOTHING, AVX512_INT16_START,
                  AVX512_INT16_STEPS, kLut6BlockColumns<std::int16_t> / 4, AVX512_END,
                  AVX512_NOTHING, AVX512_CLOBBERS)

// int8: blocks end so soon that float sums kept in memory, 24 stores a block, cost a Zen 4 a sixth
// of its speed. So they stay in registers beside the integer ones, of at most three tokens at a
// time: AVX512_TOKENS_n(F, ...) is F(m, a, b, c, d, e, f, g, h, ...) for each, a to d integers and
// e to h floats.
#define AVX512_TOKENS_1(F, ...) F(0, "0", "1", "2", "3", "12", "13", "14", "15", __VA_ARGS__)
#define AVX512_TOKENS_2(F, ...)   \
  AVX512_TOKENS_1(F, __VA_ARGS__) \
  F(1, "4", "5", "6", "7", "16", "17", "18", "19", __VA_ARGS__)
#define AVX512_TOKENS_3(F, ...)   \
  AVX512_TOKENS_2(F, __VA_ARGS__) \
  F(2, "8", "9", "10", "11", "20", "21", "22", "23", __VA_ARGS__)

#define AVX512_INT8_LOAD(m, a, b, c, d, e, f, g, h, ...) \
  "vmovaps 256*" #m "(%[sums]), %%zmm" e                 \
  "\n\t"                                                 \
  "vmovaps 256*" #m "+64(%[sums]), %%zmm" f              \
  "\n\t"                                                 \
  "vmovaps 256*" #m "+128(%[sums]), %%zmm" g             \
  "\n\t"                                                 \
  "vmovaps 256*" #m "+192(%[sums]), %%zmm" h "\n\t"
#define AVX512_INT8_STORE(m, a, b, c, d, e, f, g, h, ...) \
  "vmovaps %%zmm" e ", 256*" #m                           \
  "(%[sums])\n\t"                                         \
  "vmovaps %%zmm" f ", 256*" #m                           \
  "+64(%[sums])\n\t"                                      \
  "vmovaps %%zmm" g ", 256*" #m                           \
  "+128(%[sums])\n\t"                                     \
  "vmovaps %%zmm" h ", 256*" #m "+192(%[sums])\n\t"
#define AVX512_INT8_START(m, a, b, c, d, ...)  \
  "vpbroadcastd 4*" #m "(%[offsets]), %%zmm" a \
  "\n\t"                                       \
  "vmovdqa64 %%zmm" a ", %%zmm" b              \
  "\n\t"                                       \
  "vmovdqa64 %%zmm" a ", %%zmm" c              \
  "\n\t"                                       \
  "vmovdqa64 %%zmm" a ", %%zmm" d "\n\t"
#define AVX512_INT8_DOT(w, sums) "vpdpbusd %%zmm28, %%zmm" #w ", %%zmm" sums "\n\t"
#define AVX512_INT8_TOKEN(m, a, b, c, d, e, f, g, h, x)                                     \
  "vpbroadcastd 4*" #m "(" x "), %%zmm28\n\t" AVX512_INT8_DOT(24, a) AVX512_INT8_DOT(25, b) \
      AVX512_INT8_DOT(26, c) AVX512_INT8_DOT(27, d)
#define AVX512_INT8_END_ONE(m, integers, floats) \
  "vcvtdq2ps %%zmm" integers ", %%zmm" integers  \
  "\n\t"                                         \
  "vfmadd231ps 4*" #m "(%[scales])%{1to16%}, %%zmm" integers ", %%zmm" floats "\n\t"
#define AVX512_INT8_END(m, a, b, c, d, e, f, g, h, ...) \
  AVX512_INT8_END_ONE(m, a, e)                          \
  AVX512_INT8_END_ONE(m, b, f)                          \
  AVX512_INT8_END_ONE(m, c, g)                          \
  AVX512_INT8_END_ONE(m, d, h)

// Of a tile, the n tokens from `first` on.
#define AVX512_DEFINE_INT8(n)                                                                        \
  LUT6_AVX512 void multiply_int8_##n(const Lut6Tile& tile, std::size_t first) {                      \
    const void* w = tile.panel;                                                                      \
    const void* x = static_cast<const std::int32_t*>(tile.x) + first;                                \
    const float* scales = tile.scales + first;                                                       \
    const std::int32_t* offsets = tile.offsets + first;                                              \
    const std::size_t stride = tile.tokens * sizeof(std::int32_t);                                   \
    std::size_t blocks = tile.blocks;                                                                \
    std::size_t steps = 0;                                                                           \
    asm volatile(AVX512_TOKENS_##n(AVX512_INT8_LOAD, )                                             \
                 "1:\n\t" AVX512_TOKENS_##n(AVX512_INT8_START, )                                   \
                 "add %[stride], %[offsets]\n\tmov %[count], %[steps]\n\t"                         \
                 "2:\n\t" AVX512_WEIGHTS(0) AVX512_TOKENS_##n(AVX512_INT8_TOKEN, "%[x]")           \
                 AVX512_WEIGHTS(1) AVX512_TOKENS_##n(AVX512_INT8_TOKEN, "%[x], %[stride]")         \
                 "add $2*256, %[w]\n\tlea (%[x], %[stride], 2), %[x]\n\t"                          \
                 "dec %[steps]\n\tjne 2b\n\t"                                                      \
                 AVX512_TOKENS_##n(AVX512_INT8_END, )                                              \
                 "add %[stride], %[scales]\n\tdec %[blocks]\n\tjne 1b\n\t"                         \
                 AVX512_TOKENS_##n(AVX512_INT8_STORE, ) "vzeroupper"                               \
                 : [w] "+&r"(w), [x] "+&r"(x), [scales] "+&r"(scales), [offsets] "+&r"(offsets),   \
                   [blocks] "+&r"(blocks), [steps] "+&r"(steps)                                    \
                 : [sums] "r"(tile.sums + first * kPanelChannels), [stride] "r"(stride),           \
                   [count] "i"(kLut6BlockColumns<std::int8_t> / 8)                                 \
                 : "memory", "cc", AVX512_CLOBBERS); \
  }
AVX512_DEFINE_INT8(1)
AVX512_DEFINE_INT8(2)
AVX512_DEFINE_INT8(3)

void multiply_int8(const Lut6Tile& tile) {
  static constexpr void (*kMultiply[])(const Lut6Tile&, std::size_t) = {
      multiply_int8_1, multiply_int8_2, multiply_int8_3};
  const std::size_t half = tile.tokens <= 3 ? tile.tokens : (tile.tokens + 1) / 2;
  kMultiply[half - 1](tile, 0);
  if (half < tile.tokens) kMultiply[tile.tokens - half - 1](tile, half);
}

}  // namespace

const Lut6Kernels kLut6Avx512Kernels = {
    .name = "AVX-512",
    .panel_channels = kPanelChannels,
    .int16 = {decode_int16, multiply_int16},
    .int8 = {decode_int8, multiply_int8},
};

}  // namespace clefkit

#endif  // defined(__x86_64__)
