#include "clefkit/backend/ane/half_rows.h"

#include <algorithm>
#include <cassert>

namespace clefkit::ane {

void copy_rows(MatrixView<const float> from, MatrixView<Half> to) {
  assert(from.rows == to.rows && from.columns == to.columns);
  for (std::size_t row = 0; row < from.rows; ++row) {
    std::ranges::transform(from.row(row), to.row(row).begin(),
                           [](float value) { return to_half(value); });
  }
}

void copy_rows(MatrixView<const Half> from, MatrixView<float> to) {
  assert(from.rows == to.rows && from.columns == to.columns);
  for (std::size_t row = 0; row < from.rows; ++row) {
    std::ranges::transform(from.row(row), to.row(row).begin(),
                           [](Half value) { return to_float(value); });
  }
}

std::vector<Half> as_channels(MatrixView<const float> rows, std::size_t places) {
  assert(rows.rows <= places);
  std::vector<Half> channels(rows.columns * places);
  for (std::size_t row = 0; row < rows.rows; ++row) {
    for (std::size_t c = 0; c < rows.columns; ++c) {
      channels[c * places + row] = to_half(rows.row(row)[c]);
    }
  }
  return channels;
}

}  // namespace clefkit::ane
