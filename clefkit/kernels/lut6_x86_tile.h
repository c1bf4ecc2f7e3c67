#pragma once

// Pieces of the tile kernels' inline assembly. Compilers spill the accumulators of the same loops
// written with intrinsics (g++ 12 loses half the speed), so registers are named here by hand:
// token m of a tile keeps its sums in registers 2m and 2m + 1.
//
// LUT6_TOKENS_n(F, ...) is F(m, 2m, 2m + 1, ...) for each of n tokens.
#define LUT6_TOKENS_1(F, ...) F(0, "0", "1", __VA_ARGS__)
#define LUT6_TOKENS_2(F, ...) LUT6_TOKENS_1(F, __VA_ARGS__) F(1, "2", "3", __VA_ARGS__)
#define LUT6_TOKENS_3(F, ...) LUT6_TOKENS_2(F, __VA_ARGS__) F(2, "4", "5", __VA_ARGS__)
#define LUT6_TOKENS_4(F, ...) LUT6_TOKENS_3(F, __VA_ARGS__) F(3, "6", "7", __VA_ARGS__)
#define LUT6_TOKENS_5(F, ...) LUT6_TOKENS_4(F, __VA_ARGS__) F(4, "8", "9", __VA_ARGS__)
#define LUT6_TOKENS_6(F, ...) LUT6_TOKENS_5(F, __VA_ARGS__) F(5, "10", "11", __VA_ARGS__)

// One kernel of n tokens. A block is `steps` iterations of LUT6_STEPS(n).
#define LUT6_DEFINE_TILE(TARGET, NAME, N, START, STEPS, END, STEP_COUNT, ...)                       \
  TARGET void NAME##_##N(const Lut6Tile& tile) {                                                    \
    const void* w = tile.panel;                                                                     \
    const void* x = tile.x;                                                                         \
    const float* scales = tile.scales;                                                              \
    std::size_t blocks = tile.blocks;                                                               \
    std::size_t steps = 0;                                                                          \
    asm volatile("1:\n\t" START(N) "mov %[count], %[steps]\n\t"                                   \
                 "2:\n\t" STEPS(N) "dec %[steps]\n\tjne 2b\n\t" END(N) "dec %[blocks]\n\tjne 1b"  \
                 : [w] "+&r"(w), [x] "+&r"(x), [scales] "+&r"(scales), [blocks] "+&r"(blocks),    \
                   [steps] "+&r"(steps)                                                           \
                 : [sums] "r"(tile.sums), [count] "i"(STEP_COUNT)                                 \
                 : "memory", "cc", __VA_ARGS__); \
  }
