#include "clefkit/engine/trace.h"

#include <algorithm>
#include <utility>

namespace clefkit {

void TraceRecorder::add(const std::string& name, std::vector<std::size_t> shape,
                        std::vector<std::int64_t> values) {
  if (wants(name)) trace_[name] = {std::move(shape), std::move(values)};
}

void TraceRecorder::add(const std::string& name, std::vector<std::size_t> shape,
                        std::vector<float> values) {
  if (wants(name)) trace_[name] = {std::move(shape), std::move(values)};
}

void TraceRecorder::add(const std::string& name, MatrixView<const float> matrix) {
  add_rows(name, matrix.rows, 0, matrix);
}

void TraceRecorder::add_rows(const std::string& name, std::size_t total_rows, std::size_t first,
                             MatrixView<const float> rows) {
  if (!wants(name)) return;
  TraceTensor& tensor = trace_[name];
  if (tensor.shape.empty()) {
    tensor = {{total_rows, rows.columns}, std::vector<float>(total_rows * rows.columns)};
  }
  float* out = std::get<std::vector<float>>(tensor.values).data() + first * rows.columns;
  for (std::size_t row = 0; row < rows.rows; ++row) {
    out = std::ranges::copy(rows.row(row), out).out;
  }
}

}  // namespace clefkit
