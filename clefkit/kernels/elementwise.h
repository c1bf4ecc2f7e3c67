#pragma once

#include <cstddef>
#include <span>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit {

// out = x · rsqrt(mean(x²) + eps) · multiplier, row by row (spec: model.md 2.1, where multiplier is
// 1 + w; the gated norm of linear attention passes w itself). `out` may be `x`.
void rms_norm(const ComputeContext& context, MatrixView<const float> x,
              std::span<const float> multiplier, float eps, MatrixView<float> out);

// out = (x − mean) / sqrt(variance + eps) · weight + bias, row by row. `out` may be `x`.
void layer_norm(const ComputeContext& context, MatrixView<const float> x,
                std::span<const float> weight, std::span<const float> bias, float eps,
                MatrixView<float> out);

// gate = silu(gate) ⊙ up.
void silu_multiply(const ComputeContext& context, MatrixView<float> gate,
                   MatrixView<const float> up);
// x = x ⊙ sigmoid(gate).
void sigmoid_multiply(const ComputeContext& context, MatrixView<float> x,
                      MatrixView<const float> gate);
// x = gelu(x): exact (erf), or the tanh approximation.
void gelu_erf(const ComputeContext& context, MatrixView<float> x);
void gelu_tanh(const ComputeContext& context, MatrixView<float> x);
// x += y.
void add(const ComputeContext& context, MatrixView<float> x, MatrixView<const float> y);

// In place, over the whole span; the maximum is subtracted first. An empty span stays empty.
void softmax(std::span<float> values);
float dot(std::span<const float> a, std::span<const float> b);
// log1p(e^x), x itself above 20, as PyTorch's softplus.
float softplus(float x);
float sigmoid(float x);

// True when a value is infinite or NaN.
bool has_non_finite(std::span<const float> values);

}  // namespace clefkit
