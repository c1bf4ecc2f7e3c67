#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "clefkit/model/checkpoint.h"

// For tests: the golden checkpoints, and how far results are from what they are to be.
namespace clefkit::ane {

inline Model open_golden(const std::string& name) {
  return open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/" + name);
}

// Root mean square of the difference as a part of that of the values.
inline double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(double{actual[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / size);
}

}  // namespace clefkit::ane
