#pragma once

#include <cstddef>
#include <cstdint>

#include "clefkit/kernels/lut6_kernels.h"

// Pieces of the tile kernels' inline assembly. Compilers spill the accumulators of the same loops
// written with intrinsics (g++ 12 loses half the speed), so registers are named here by hand.
//
// LUT6_TOKENS_n(F, ...) is F(m, a, b, c, d, ...) for each of n tokens: token m has the registers
// a = 2m and b = 2m + 1, and where there are 32 of them also c = 12 + 2m and d = 13 + 2m.
#define LUT6_TOKENS_1(F, ...) F(0, "0", "1", "12", "13", __VA_ARGS__)
#define LUT6_TOKENS_2(F, ...) LUT6_TOKENS_1(F, __VA_ARGS__) F(1, "2", "3", "14", "15", __VA_ARGS__)
#define LUT6_TOKENS_3(F, ...) LUT6_TOKENS_2(F, __VA_ARGS__) F(2, "4", "5", "16", "17", __VA_ARGS__)
#define LUT6_TOKENS_4(F, ...) LUT6_TOKENS_3(F, __VA_ARGS__) F(3, "6", "7", "18", "19", __VA_ARGS__)
#define LUT6_TOKENS_5(F, ...) LUT6_TOKENS_4(F, __VA_ARGS__) F(4, "8", "9", "20", "21", __VA_ARGS__)
#define LUT6_TOKENS_6(F, ...) \
  LUT6_TOKENS_5(F, __VA_ARGS__) F(5, "10", "11", "22", "23", __VA_ARGS__)

namespace clefkit {

alignas(32) inline constexpr std::int16_t kInt16Ones[16] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                            1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace clefkit

// NAME_n multiplies a tile of n tokens: BEGIN(n), then for each block START(n), COUNT times
// STEPS(n) and END(n), then FINISH(n). They use the operands below. The code around is compiled
// for older instruction sets, hence the last instruction.
#define LUT6_DEFINE_TILE(TARGET, NAME, N, BEGIN, START, STEPS, COUNT, END, FINISH, ...)             \
  TARGET void NAME##_##N(const Lut6Tile& tile) {                                                    \
    const void* w = tile.panel;                                                                     \
    const void* x = tile.x;                                                                         \
    const float* scales = tile.scales;                                                              \
    const std::int32_t* offsets = tile.offsets;                                                     \
    std::size_t blocks = tile.blocks;                                                               \
    std::size_t steps = 0;                                                                          \
    asm volatile(BEGIN(N) "1:\n\t" START(N) "mov %[count], %[steps]\n\t"                          \
                 "2:\n\t" STEPS(N) "dec %[steps]\n\tjne 2b\n\t"                                  \
                 END(N) "dec %[blocks]\n\tjne 1b\n\t" FINISH(N) "vzeroupper"                                  \
                 : [w] "+&r"(w), [x] "+&r"(x), [scales] "+&r"(scales), [offsets] "+&r"(offsets),  \
                   [blocks] "+&r"(blocks), [steps] "+&r"(steps)                                   \
                 : [sums] "r"(tile.sums), [count] "i"(COUNT), [ones] "m"(kInt16Ones)              \
                 : "memory", "cc", __VA_ARGS__); \
  }

// For all tile sizes, and NAME that chooses among them.
#define LUT6_DEFINE_TILES(TARGET, NAME, ...)                                             \
  LUT6_DEFINE_TILE(TARGET, NAME, 1, __VA_ARGS__)                                         \
  LUT6_DEFINE_TILE(TARGET, NAME, 2, __VA_ARGS__)                                         \
  LUT6_DEFINE_TILE(TARGET, NAME, 3, __VA_ARGS__)                                         \
  LUT6_DEFINE_TILE(TARGET, NAME, 4, __VA_ARGS__)                                         \
  LUT6_DEFINE_TILE(TARGET, NAME, 5, __VA_ARGS__)                                         \
  LUT6_DEFINE_TILE(TARGET, NAME, 6, __VA_ARGS__)                                         \
  void NAME(const Lut6Tile& tile) {                                                      \
    static constexpr void (*kTiles[])(const Lut6Tile&) = {NAME##_1, NAME##_2, NAME##_3,  \
                                                          NAME##_4, NAME##_5, NAME##_6}; \
    kTiles[tile.tokens - 1](tile);                                                       \
  }
