#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace clefkit {

// Rows of one buffer. `stride` (elements from one row to the next) may exceed `columns`.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;

  MatrixView() = default;
  MatrixView(T* first, std::size_t row_count, std::size_t column_count)
      : data(first), rows(row_count), columns(column_count), stride(column_count) {}
  MatrixView(T* first, std::size_t row_count, std::size_t column_count, std::size_t row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {}

  std::span<T> row(std::size_t index) const { return {data + index * stride, columns}; }
  MatrixView rows_from(std::size_t first, std::size_t count) const {
    return {data + first * stride, count, columns, stride};
  }
  MatrixView columns_from(std::size_t first, std::size_t count) const {
    return {data + first, rows, count, stride};
  }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, columns, stride};
  }
};

}  // namespace clefkit
