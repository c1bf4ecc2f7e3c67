#include "clefkit/eval/tensor_errors.h"

#include <algorithm>
#include <cmath>

#include "clefkit/base/error.h"
#include "clefkit/base/mapped_file.h"

namespace clefkit {
namespace {

// Tasks of about a megabyte of weights.
constexpr std::size_t kWeightsPerTask = std::size_t{1} << 20;

struct Sums {
  double error = 0;
  double weight = 0;
  double largest = 0;
};

Sums compare_rows(const Weight& weight, const Weight& against, std::size_t begin, std::size_t end) {
  std::vector<float> found(column_count(weight)), expected(column_count(weight));
  Sums sums;
  for (std::size_t row = begin; row < end; ++row) {
    read_row(weight, row, found);
    read_row(against, row, expected);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double error = static_cast<double>(found[i]) - expected[i];
      sums.error += error * error;
      sums.weight += static_cast<double>(expected[i]) * expected[i];
      sums.largest = std::max(sums.largest, std::fabs(error));
    }
  }
  return sums;
}

TensorError compare(const std::string& name, const Weight& weight, const Weight& against,
                    const ComputeContext& context) {
  const std::size_t rows = row_count(weight);
  if (rows != row_count(against) || column_count(weight) != column_count(against)) {
    throw_error(ErrorCode::kInvalidArgument, name, "{}x{} in one model, {}x{} in the other", rows,
                column_count(weight), row_count(against), column_count(against));
  }
  const std::size_t rows_per_task =
      std::max<std::size_t>(1, kWeightsPerTask / std::max<std::size_t>(1, column_count(weight)));
  const std::size_t tasks = (rows + rows_per_task - 1) / rows_per_task;
  std::vector<Sums> parts(tasks);
  context.parallel_for(tasks, [&](std::size_t task, std::size_t) {
    const std::size_t begin = task * rows_per_task;
    parts[task] = compare_rows(weight, against, begin, std::min(rows, begin + rows_per_task));
  });
  Sums sums;
  for (const Sums& part : parts) {
    sums.error += part.error;
    sums.weight += part.weight;
    sums.largest = std::max(sums.largest, part.largest);
  }
  return {name, stored_as(weight), sums.weight > 0 ? std::sqrt(sums.error / sums.weight) : 0.0,
          sums.largest};
}

Bytes bytes_of(const Weight& weight) {
  if (const auto* lut = std::get_if<Lut6Matrix>(&weight)) return lut->packed_indices();
  return std::get<TensorView>(weight).bytes;
}

}  // namespace

std::string stored_as(const Weight& weight) {
  if (std::holds_alternative<Lut6Matrix>(weight)) return "lut6";
  return std::string(to_string(std::get<TensorView>(weight).dtype));
}

std::size_t row_count(const Weight& weight) {
  if (const auto* lut = std::get_if<Lut6Matrix>(&weight)) return lut->shape().rows;
  const auto& shape = std::get<TensorView>(weight).shape;
  return shape.size() < 2 ? 1 : shape[0];
}

std::size_t column_count(const Weight& weight) {
  if (const auto* lut = std::get_if<Lut6Matrix>(&weight)) return lut->shape().columns;
  return std::get<TensorView>(weight).element_count() / row_count(weight);
}

void read_row(const Weight& weight, std::size_t row, std::vector<float>& out) {
  out.resize(column_count(weight));
  if (const auto* lut = std::get_if<Lut6Matrix>(&weight)) {
    lut->dequantize_row(row, out);
    return;
  }
  const auto& tensor = std::get<TensorView>(weight);
  const auto read = [&](auto values, auto convert) {
    std::ranges::transform(values.subspan(row * out.size(), out.size()), out.begin(), convert);
  };
  switch (tensor.dtype) {
    case DType::kBF16:
      return read(tensor.bfloat16_values(), [](BFloat16 value) { return to_float(value); });
    case DType::kF16:
      return read(tensor.half_values(), [](Half value) { return to_float(value); });
    case DType::kF32:
      return read(tensor.float_values(), [](float value) { return value; });
    default:
      throw_error(ErrorCode::kInternal, tensor.name, "element type {} cannot be compared",
                  to_string(tensor.dtype));
  }
}

std::vector<TensorError> tensor_errors(
    const Model& model, const Model& against, const ComputeContext& context,
    const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : model.weights) {
    if (against.weights.contains(name)) {
      names.push_back(name);
    } else if (!name.starts_with("model.visual.")) {
      throw_error(ErrorCode::kInvalidArgument, against.directory.string(),
                  "has no tensor {}, expected a model of the same architecture", name);
    }
  }
  std::ranges::sort(names);
  std::vector<TensorError> errors;
  for (const std::string& name : names) {
    const Weight& weight = model.weight(name);
    const Weight& other = against.weight(name);
    errors.push_back(compare(name, weight, other, context));
    release_pages(bytes_of(weight));
    release_pages(bytes_of(other));
    if (progress) progress(errors.size(), names.size());
  }
  return errors;
}

}  // namespace clefkit
