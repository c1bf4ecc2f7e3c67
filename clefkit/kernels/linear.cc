#include "clefkit/kernels/linear.h"

#include <cassert>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/kernels/linear_exact.h"
#include "clefkit/kernels/lut6_linear.h"

namespace clefkit {
namespace {

struct MatrixShape {
  std::size_t rows;
  std::size_t columns;
};

template <typename T>
MatrixShape shape_of(const MatrixView<const T>& weight) {
  return {weight.rows, weight.columns};
}
MatrixShape shape_of(const Lut6Matrix& weight) {
  return {weight.shape().rows, weight.shape().columns};
}

float as_float(float value) { return value; }
float as_float(BFloat16 value) { return to_float(value); }
float as_float(Half value) { return to_float(value); }

template <typename T>
void decode_row(const MatrixView<const T>& weight, std::size_t row, std::span<float> out) {
  const std::span<const T> from = weight.row(row);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = as_float(from[i]);
}
void decode_row(const Lut6Matrix& weight, std::size_t row, std::span<float> out) {
  weight.dequantize_row(row, out);
}
void decode_row(const WeightMatrix& weight, std::size_t row, std::span<float> out) {
  std::visit([&](const auto& matrix) { decode_row(matrix, row, out); }, weight);
}

}  // namespace

Linear::Linear(WeightMatrix weight, std::span<const float> bias, Precision precision)
    : weight_(std::move(weight)), bias_(bias.begin(), bias.end()), precision_(precision) {
  const MatrixShape shape =
      std::visit([](const auto& matrix) { return shape_of(matrix); }, weight_);
  out_features_ = shape.rows;
  in_features_ = shape.columns;
  if (out_features_ == 0 || in_features_ == 0) {
    throw_error(ErrorCode::kInvalidArgument, "linear", "weights of {}x{}, expected some",
                out_features_, in_features_);
  }
  if (!bias_.empty() && bias_.size() != out_features_) {
    throw_error(ErrorCode::kInvalidArgument, "linear", "a bias of {} values, expected {}",
                bias_.size(), out_features_);
  }
}

void Linear::apply(const ComputeContext& context, MatrixView<const float> x,
                   MatrixView<float> y) const {
  const LinearOutput output{this, y};
  apply_linears(context, x, {&output, 1});
}

void apply_linears(const ComputeContext& context, MatrixView<const float> x,
                   std::span<const LinearOutput> outputs) {
  const StageTimer timer(context.times, "linear");
  // The one place where forms of weights and precisions meet the kernels for them.
  const Lut6Kernels* const lut6_kernels = fastest_lut6_kernels();
  std::vector<LinearOutput> exact;
  std::vector<Lut6Output> high, fast;
  for (const auto& [linear, y] : outputs) {
    assert(x.columns == linear->in_features());
    assert(x.rows == y.rows && y.columns == linear->out_features());
    const auto* const lut6 = std::get_if<Lut6Matrix>(&linear->weight());
    if (linear->precision() == Precision::kExact || lut6 == nullptr || lut6_kernels == nullptr ||
        !lut6_linear_supports(lut6->shape())) {
      exact.push_back({linear, y});
    } else {
      (linear->precision() == Precision::kHigh ? high : fast).push_back({lut6, linear->bias(), y});
    }
  }
  if (!exact.empty()) apply_linears_exact(context, x, exact);
  if (!high.empty()) lut6_linear(context, *lut6_kernels, Lut6Format::kInt16, x, high);
  if (!fast.empty()) lut6_linear(context, *lut6_kernels, Lut6Format::kInt8, x, fast);
}

void apply_linear_reference(const Linear& linear, MatrixView<const float> x, MatrixView<float> y) {
  std::vector<float> weights(linear.in_features());
  for (std::size_t channel = 0; channel < linear.out_features(); ++channel) {
    decode_row(linear.weight(), channel, weights);
    for (std::size_t token = 0; token < x.rows; ++token) {
      double sum = linear.bias().empty() ? 0.0 : static_cast<double>(linear.bias()[channel]);
      for (std::size_t i = 0; i < weights.size(); ++i)
        sum += static_cast<double>(x.row(token)[i]) * static_cast<double>(weights[i]);
      y.row(token)[channel] = static_cast<float>(sum);
    }
  }
}

}  // namespace clefkit
