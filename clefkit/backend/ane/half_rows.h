#pragma once

#include <cstddef>
#include <vector>

#include "clefkit/base/half.h"
#include "clefkit/base/matrix_view.h"

// Between float32 rows and what the ports of programs hold.
namespace clefkit::ane {

// Rounds rows to FP16, and back; both views are of one size.
void copy_rows(MatrixView<const float> from, MatrixView<Half> to);
void copy_rows(MatrixView<const Half> from, MatrixView<float> to);

// Rows [tokens, columns] as channels [columns, places], padded with zeros.
std::vector<Half> as_channels(MatrixView<const float> rows, std::size_t places);

}  // namespace clefkit::ane
