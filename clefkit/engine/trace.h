#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "clefkit/base/matrix_view.h"

namespace clefkit {

// A named intermediate result, row-major.
struct TraceTensor {
  std::vector<std::size_t> shape;
  std::variant<std::vector<float>, std::vector<std::int64_t>> values;
};

// Names of cli.md, `trace`.
using Trace = std::map<std::string, TraceTensor>;

// Gathers the tensors of a run whose names start with a prefix; the others cost nothing.
class TraceRecorder {
 public:
  explicit TraceRecorder(std::string name_prefix) : name_prefix_(std::move(name_prefix)) {}

  bool wants(std::string_view name) const { return name.starts_with(name_prefix_); }
  void add(const std::string& name, std::vector<std::size_t> shape,
           std::vector<std::int64_t> values);
  void add(const std::string& name, std::vector<std::size_t> shape, std::vector<float> values);
  void add(const std::string& name, MatrixView<const float> matrix);
  // Rows [first, first + rows.rows) of a tensor that arrives piece by piece.
  void add_rows(const std::string& name, std::size_t total_rows, std::size_t first,
                MatrixView<const float> rows);

  Trace take() && { return std::move(trace_); }

 private:
  std::string name_prefix_;
  Trace trace_;
};

}  // namespace clefkit
