#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/model/model.h"

namespace clefkit {

// How far one model's tensor is from another's.
struct TensorError {
  std::string name;
  std::string stored;        // "lut6", "F16", "BF16", …
  double relative_rmse = 0;  // sqrt(Σ(w−w′)² / Σw′²), w′ the other model's; 0 for zeros only.
  double max_abs_error = 0;
};

// "lut6", or the element type.
std::string stored_as(const Weight& weight);

// Row `row` of a weight as floats; a tensor of one dimension is one row, of more than two
// dimensions its first by the rest.
std::size_t row_count(const Weight& weight);
std::size_t column_count(const Weight& weight);
void read_row(const Weight& weight, std::size_t row, std::vector<float>& out);

// Every tensor that both have, by name. Throws Error(kInvalidArgument) when they are not the same
// architecture; tensors of a vision encoder that only one has are passed over.
std::vector<TensorError> tensor_errors(
    const Model& model, const Model& against, const ComputeContext& context,
    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

}  // namespace clefkit
