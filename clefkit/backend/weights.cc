#include "clefkit/backend/weights.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "clefkit/base/error.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

void copy_floats(const TensorView& tensor, std::size_t first, std::span<float> out) {
  const auto copy = [&](const auto values) {
    std::ranges::transform(values.subspan(first, out.size()), out.begin(),
                           [](auto value) { return to_float(value); });
  };
  switch (tensor.dtype) {
    case DType::kBF16:
      return copy(tensor.bfloat16_values());
    case DType::kF16:
      return copy(tensor.half_values());
    case DType::kF32:
      std::ranges::copy(tensor.float_values().subspan(first, out.size()), out.begin());
      return;
    default:
      throw_error(ErrorCode::kCorruptData, tensor.name, "type {}, expected BF16, F16 or F32",
                  to_string(tensor.dtype));
  }
}

WeightMatrix dense_matrix(const TensorView& tensor, std::size_t rows, std::size_t columns) {
  switch (tensor.dtype) {
    case DType::kBF16:
      return MatrixView<const BFloat16>(tensor.bfloat16_values().data(), rows, columns);
    case DType::kF16:
      return MatrixView<const Half>(tensor.half_values().data(), rows, columns);
    case DType::kF32:
      return MatrixView<const float>(tensor.float_values().data(), rows, columns);
    default:
      throw_error(ErrorCode::kCorruptData, tensor.name, "type {}, expected BF16, F16 or F32",
                  to_string(tensor.dtype));
  }
}

// [8192, 1, 4] and [8192, 4] are the same matrix, and so is [1, 4] for the vector [4].
std::vector<std::size_t> without_ones(std::span<const std::size_t> shape) {
  std::vector<std::size_t> kept;
  std::ranges::copy_if(shape, std::back_inserter(kept), [](std::size_t size) { return size != 1; });
  return kept;
}

void check_shape(const std::string& name, std::span<const std::size_t> found,
                 std::span<const std::size_t> expected) {
  if (without_ones(found) == without_ones(expected)) return;
  throw_error(ErrorCode::kCorruptData, name, "shape {}, expected {}", shape_text(found),
              shape_text(expected));
}

[[noreturn]] void throw_not_finite(const std::string& name, std::span<const std::size_t> shape,
                                   std::size_t flat_index, float value) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; flat_index /= shape[i]) {
    index[i] = flat_index % shape[i];
  }
  throw_error(ErrorCode::kCorruptData, name, "element {} is {}, expected finite numbers",
              shape_text(index), value);
}

void check_weight(const std::string& name, const Weight& weight) {
  std::visit(Overloaded{[&](const TensorView& tensor) {
                          std::vector<float> block(4096);
                          const std::size_t count = tensor.element_count();
                          for (std::size_t first = 0; first < count; first += block.size()) {
                            const auto values =
                                std::span(block).first(std::min(block.size(), count - first));
                            copy_floats(tensor, first, values);
                            check_finite(name, tensor.shape, first, values);
                          }
                        },
                        [&](const Lut6Matrix& matrix) {
                          const std::array shape{matrix.shape().rows, matrix.shape().columns};
                          std::vector<float> row(shape[1]);
                          for (std::size_t r = 0; r < shape[0]; ++r) {
                            matrix.dequantize_row(r, row);
                            check_finite(name, shape, r * shape[1], row);
                          }
                        }},
             weight);
}

}  // namespace

void check_finite(const std::string& name, std::span<const std::size_t> shape, std::size_t first,
                  std::span<const float> values) {
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return;
  throw_not_finite(name, shape, first + static_cast<std::size_t>(bad - values.begin()), *bad);
}

WeightMatrix weight_matrix(const Model& model, const std::string& name, std::size_t rows,
                           std::size_t columns) {
  const std::array expected{rows, columns};
  return std::visit(
      Overloaded{[&](const TensorView& tensor) {
                   const bool fits = !tensor.shape.empty() && tensor.shape[0] == rows &&
                                     tensor.element_count() == rows * columns;
                   if (!fits) check_shape(name, tensor.shape, expected);
                   return dense_matrix(tensor, rows, columns);
                 },
                 [&](const Lut6Matrix& matrix) -> WeightMatrix {
                   const std::array found{matrix.shape().rows, matrix.shape().columns};
                   check_shape(name, found, expected);
                   return matrix;
                 }},
      model.weight(name));
}

WeightMatrix weight_rows(const WeightMatrix& matrix, std::size_t first, std::size_t count) {
  return std::visit(
      Overloaded{[&](const Lut6Matrix& lut6) -> WeightMatrix {
                   assert(first == 0 && count == lut6.shape().rows);
                   return lut6;
                 },
                 [&](const auto& dense) -> WeightMatrix { return dense.rows_from(first, count); }},
      matrix);
}

Linear linear_layer(const Model& model, const std::string& name, std::size_t out_features,
                    std::size_t in_features, Precision precision) {
  return Linear(weight_matrix(model, name, out_features, in_features), {}, precision);
}

Linear linear_layer_with_bias(const Model& model, const std::string& name, std::size_t out_features,
                              std::size_t in_features) {
  return Linear(weight_matrix(model, name + ".weight", out_features, in_features),
                float_vector(model, name + ".bias", out_features));
}

std::vector<float> float_values(const Model& model, const std::string& name,
                                std::span<const std::size_t> shape) {
  const TensorView& tensor = model.tensor(name);
  check_shape(name, tensor.shape, shape);
  std::vector<float> values(tensor.element_count());
  copy_floats(tensor, 0, values);
  check_finite(name, tensor.shape, 0, values);
  return values;
}

std::vector<float> float_vector(const Model& model, const std::string& name, std::size_t size) {
  return float_values(model, name, std::array{size});
}

std::vector<float> norm_multiplier(const Model& model, const std::string& name, std::size_t size) {
  std::vector<float> multiplier = float_vector(model, name, size);
  for (float& value : multiplier) value += 1.0f;
  return multiplier;
}

void copy_weight_row(const WeightMatrix& matrix, std::size_t row, std::span<float> out) {
  std::visit(Overloaded{[&](const Lut6Matrix& lut6) { lut6.dequantize_row(row, out); },
                        [&](const MatrixView<const float>& dense) {
                          std::ranges::copy(dense.row(row), out.begin());
                        },
                        [&](const auto& dense) {
                          std::ranges::transform(dense.row(row), out.begin(),
                                                 [](auto value) { return to_float(value); });
                        }},
             matrix);
}

std::size_t rows_of(const WeightMatrix& matrix) {
  return std::visit(Overloaded{[](const Lut6Matrix& lut6) { return lut6.shape().rows; },
                               [](const auto& dense) { return dense.rows; }},
                    matrix);
}

std::size_t columns_of(const WeightMatrix& matrix) {
  return std::visit(Overloaded{[](const Lut6Matrix& lut6) { return lut6.shape().columns; },
                               [](const auto& dense) { return dense.columns; }},
                    matrix);
}

void check_weights_are_finite(const Model& model,
                              const std::function<bool(std::string_view)>& selected) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : model.weights) {
    if (selected(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  for (const std::string& name : names) check_weight(name, model.weight(name));
}

void check_results(const Model& model, MatrixView<const float> rows, std::string_view weight_prefix,
                   const std::string& place) {
  for (std::size_t row = 0; row < rows.rows; ++row) {
    if (!has_non_finite(rows.row(row))) continue;
    check_weights_are_finite(
        model, [&](std::string_view name) { return name.starts_with(weight_prefix); });
    throw_error(ErrorCode::kCorruptData, place, "values overflow float32, expected finite numbers");
  }
}

}  // namespace clefkit
