#pragma once

#include <span>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/kernels/lut6_kernels.h"
#include "clefkit/quant/lut6_matrix.h"

namespace clefkit {

// What weights and activations become for multiplying.
enum class Lut6Format {
  kInt16,
  kInt8,  // Groups on a grid (Lut6Matrix::grid_scale); the others are computed as kInt16.
};

struct Lut6Output {
  const Lut6Matrix* matrix;
  std::span<const float> bias;  // empty or [rows of the matrix]
  MatrixView<float> y;          // [tokens, rows of the matrix]
};

// True when lut6_linear can compute with such a matrix: whole groups of 16 rows share a palette,
// as in every bundle we write.
bool lut6_linear_supports(const Lut6Matrix::Shape& shape);

// y = x · Wᵀ + b for each output, with weights decoded straight from the mapped indices: tables and
// activations as integers, exact sums within a block of columns, float32 sums over blocks in
// ascending order. The result is the same bits for every instruction set and number of threads,
// and a row of y depends on its row of x only. Relative RMSE with outlier channels 50 times as
// large: below 2e-4 (kInt16), 1.2e-2 to 1.5e-2 (kInt8).
// x: [tokens, columns], tokens ≥ 1. Scratch memory is kept by the calling thread: 1 to 3 bytes an
// activation of one sweep (at most 512 tokens), and 0.2 MiB a worker.
void lut6_linear(const ComputeContext& context, const Lut6Kernels& kernels, Lut6Format format,
                 MatrixView<const float> x, std::span<const Lut6Output> outputs);

}  // namespace clefkit
