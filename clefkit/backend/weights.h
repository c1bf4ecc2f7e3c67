#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit {

// From a model's named weights to what the kernels take. Everywhere below `shape` is what the
// architecture calls for; Error(kCorruptData) names the tensor when it is another, Error(kNotFound)
// when there is no such tensor.

// A weight matrix as it is stored, [rows, columns]; dimensions after the first count as one
// ([8192, 1, 4] is a matrix of 8192 rows of 4). The model must outlive it.
WeightMatrix weight_matrix(const Model& model, const std::string& name, std::size_t rows,
                           std::size_t columns);

// Rows [first, first + count) of a dense matrix. Palettized ones are not cut.
WeightMatrix weight_rows(const WeightMatrix& matrix, std::size_t first, std::size_t count);

// y = x · Wᵀ with the matrix of that name.
Linear linear_layer(const Model& model, const std::string& name, std::size_t out_features,
                    std::size_t in_features, Precision precision);

// y = x · Wᵀ + b with `name`.weight and `name`.bias, computed in float32.
Linear linear_layer_with_bias(const Model& model, const std::string& name, std::size_t out_features,
                              std::size_t in_features);

// All elements of a dense tensor as float32, row-major. Throws Error(kCorruptData) naming the
// element when one is NaN or infinite: these tensors are small, so it costs nothing to look.
std::vector<float> float_values(const Model& model, const std::string& name,
                                std::span<const std::size_t> shape);
std::vector<float> float_vector(const Model& model, const std::string& name, std::size_t size);

// 1 + w, formed in float32: the text layers' RMS norms are stored zero-centred (model.md 1.3).
std::vector<float> norm_multiplier(const Model& model, const std::string& name, std::size_t size);

// One row of a matrix as float32.
void copy_weight_row(const WeightMatrix& matrix, std::size_t row, std::span<float> out);
std::size_t rows_of(const WeightMatrix& matrix);
std::size_t columns_of(const WeightMatrix& matrix);

// Throws Error(kCorruptData) naming the tensor and its element when a weight whose name is
// `selected` is NaN or infinite. Reads every byte of them: for explaining a bad result.
void check_weights_are_finite(const Model& model,
                              const std::function<bool(std::string_view name)>& selected);

// The same for `values`, which stand behind `first` others in a tensor of that shape.
void check_finite(const std::string& name, std::span<const std::size_t> shape, std::size_t first,
                  std::span<const float> values);

// Throws Error(kCorruptData) when a computed row holds a NaN or an infinity: it names the weight to
// blame among those whose names start with `weight_prefix`, else `place`.
void check_results(const Model& model, MatrixView<const float> rows, std::string_view weight_prefix,
                   const std::string& place);

}  // namespace clefkit
