#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/base/half.h"
#include "clefkit/base/matrix_view.h"
#include "clefkit/quant/lut6_matrix.h"

namespace clefkit {

// How a linear layer multiplies. Dense weights are always computed as kExact.
enum class Precision {
  kExact,  // float32 products and sums of the decoded weights
  kHigh,   // int16 table and activations, exact integer sums within a block
  kFast,   // int8 table and activations
};

// Any stored form of a weight matrix [out_features, in_features]. Views: the mapped model must
// outlive them.
using WeightMatrix = std::variant<MatrixView<const float>, MatrixView<const BFloat16>,
                                  MatrixView<const Half>, Lut6Matrix>;

// y = x · Wᵀ + b: the one seam between the forward pass and how weights are stored and
// multiplied. A row of y depends only on the same row of x: not on the other rows, their number,
// or the number of threads, bit for bit.
class Linear {
 public:
  Linear() = default;
  // `bias` is empty or [out_features]; it is copied.
  explicit Linear(WeightMatrix weight, std::span<const float> bias = {},
                  Precision precision = Precision::kExact);

  std::size_t out_features() const { return out_features_; }
  std::size_t in_features() const { return in_features_; }
  const WeightMatrix& weight() const { return weight_; }
  std::span<const float> bias() const { return bias_; }
  Precision precision() const { return precision_; }

  // x: [tokens, in_features], y: [tokens, out_features], not overlapping.
  void apply(const ComputeContext& context, MatrixView<const float> x, MatrixView<float> y) const;

 private:
  WeightMatrix weight_;
  std::vector<float> bias_;
  Precision precision_ = Precision::kExact;
  std::size_t out_features_ = 0;
  std::size_t in_features_ = 0;
};

// Several layers over one x, which is then packed once.
struct LinearOutput {
  const Linear* linear;
  MatrixView<float> y;
};
void apply_linears(const ComputeContext& context, MatrixView<const float> x,
                   std::span<const LinearOutput> outputs);

// Plain double-precision loops over the decoded weights: what the fast kernels are tested against.
void apply_linear_reference(const Linear& linear, MatrixView<const float> x, MatrixView<float> y);

}  // namespace clefkit
