#pragma once

// Included before Highway by every file that it compiles once for each instruction set, and by
// tests that go through them. Vectors of a size unknown when compiling are left out: buffers are
// padded for sizes that are powers of two, and NEON is there on every such arm64 machine.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
