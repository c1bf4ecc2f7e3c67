#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "clefkit/base/matrix_view.h"

namespace clefkit {

// A [rows, columns] matrix that owns its values. Starts uninitialised: memory that is never written
// costs nothing.
class FloatMatrix {
 public:
  FloatMatrix() = default;
  FloatMatrix(std::size_t rows, std::size_t columns)
      : rows_(rows),
        columns_(columns),
        values_(std::make_unique_for_overwrite<float[]>(rows * columns)) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  MatrixView<float> view() { return {values_.get(), rows_, columns_}; }
  MatrixView<const float> view() const { return {values_.get(), rows_, columns_}; }
  std::span<float> values() { return {values_.get(), rows_ * columns_}; }
  std::span<const float> values() const { return {values_.get(), rows_ * columns_}; }
  std::span<float> row(std::size_t index) { return view().row(index); }
  std::span<const float> row(std::size_t index) const { return view().row(index); }

 private:
  std::size_t rows_ = 0, columns_ = 0;
  std::unique_ptr<float[]> values_;
};

}  // namespace clefkit
