#include "clefkit/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace clefkit {
namespace {

template <typename Function>
void for_each_value(const ComputeContext& context, MatrixView<float> x, const Function& function) {
  context.parallel_for(x.rows, [&](std::size_t row, std::size_t) {
    for (std::size_t i = 0; i < x.columns; ++i) function(x.row(row)[i], row, i);
  });
}

}  // namespace

void rms_norm(const ComputeContext& context, MatrixView<const float> x,
              std::span<const float> multiplier, float eps, MatrixView<float> out) {
  context.parallel_for(x.rows, [&](std::size_t row, std::size_t) {
    const auto values = x.row(row);
    const float mean_square = dot(values, values) / static_cast<float>(x.columns);
    const float factor = 1.0f / std::sqrt(mean_square + eps);
    for (std::size_t i = 0; i < x.columns; ++i) {
      out.row(row)[i] = values[i] * factor * multiplier[i];
    }
  });
}

void layer_norm(const ComputeContext& context, MatrixView<const float> x,
                std::span<const float> weight, std::span<const float> bias, float eps,
                MatrixView<float> out) {
  context.parallel_for(x.rows, [&](std::size_t row, std::size_t) {
    const auto values = x.row(row);
    double mean = 0.0;
    for (const float value : values) mean += value;
    mean /= static_cast<double>(x.columns);
    double variance = 0.0;
    for (const float value : values) variance += (value - mean) * (value - mean);
    variance /= static_cast<double>(x.columns);
    const double factor = 1.0 / std::sqrt(variance + eps);
    for (std::size_t i = 0; i < x.columns; ++i) {
      out.row(row)[i] = static_cast<float>((values[i] - mean) * factor) * weight[i] + bias[i];
    }
  });
}

void silu_multiply(const ComputeContext& context, MatrixView<float> gate,
                   MatrixView<const float> up) {
  for_each_value(context, gate, [&](float& value, std::size_t row, std::size_t i) {
    value = value * sigmoid(value) * up.row(row)[i];
  });
}

void sigmoid_multiply(const ComputeContext& context, MatrixView<float> x,
                      MatrixView<const float> gate) {
  for_each_value(context, x, [&](float& value, std::size_t row, std::size_t i) {
    value *= sigmoid(gate.row(row)[i]);
  });
}

void gelu_erf(const ComputeContext& context, MatrixView<float> x) {
  for_each_value(context, x, [](float& value, std::size_t, std::size_t) {
    value = 0.5f * value * (1.0f + std::erf(value * 0.70710678f));
  });
}

void gelu_tanh(const ComputeContext& context, MatrixView<float> x) {
  for_each_value(context, x, [](float& value, std::size_t, std::size_t) {
    const float inner = 0.79788456f * (value + 0.044715f * value * value * value);
    value = 0.5f * value * (1.0f + std::tanh(inner));
  });
}

void add(const ComputeContext& context, MatrixView<float> x, MatrixView<const float> y) {
  for_each_value(context, x,
                 [&](float& value, std::size_t row, std::size_t i) { value += y.row(row)[i]; });
}

void softmax(std::span<float> values) {
  float maximum = -std::numeric_limits<float>::infinity();
  for (const float value : values) {
    if (std::isnan(value)) {
      maximum = value;
      break;
    }
    maximum = std::max(maximum, value);
  }
  float sum = 0.0f;
  for (float& value : values) sum += value = std::exp(value - maximum);
  for (float& value : values) value /= sum;
}

float dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return static_cast<float>(sum);
}

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

bool has_non_finite(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(),
                     [](float value) { return !std::isfinite(value); });
}

}  // namespace clefkit
