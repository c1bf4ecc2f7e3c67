#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "clefkit/base/matrix_view.h"

namespace clefkit {

// For tests: a matrix of uniform random values whose rows lie `gap` floats apart, in a buffer that
// ends with the last row, so that a sanitizer sees any read beyond it.
class RandomMatrix {
 public:
  RandomMatrix(std::size_t rows, std::size_t columns, unsigned seed, float low = -1.0f,
               float high = 1.0f, std::size_t gap = 0)
      : rows_(rows), columns_(columns), stride_(columns + gap) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> distribution(low, high);
    values_.resize(rows == 0 ? 0 : (rows - 1) * stride_ + columns);
    for (float& value : values_) value = distribution(generator);
  }

  MatrixView<float> view() { return {values_.data(), rows_, columns_, stride_}; }
  MatrixView<const float> view() const { return {values_.data(), rows_, columns_, stride_}; }
  std::vector<float>& values() { return values_; }

 private:
  std::size_t rows_, columns_, stride_;
  std::vector<float> values_;
};

}  // namespace clefkit
