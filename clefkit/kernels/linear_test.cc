#include "clefkit/kernels/linear.h"

#include <gtest/gtest.h>

#include <array>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

// Powers of two and small integers: every form holds them exactly, so results are exact too.
const std::array<float, 6> kWeights{1, 2, 3, -1, 0.5f, 4};  // [2, 3]
const std::array<float, 6> kX{1, 10, 100, 2, 0, -2};        // [2, 3]
const std::array<float, 2> kBias{1000, -1000};
const std::array<float, 4> kExpected{1321, -596, 996, -1010};  // By hand.

template <typename T>
std::vector<float> apply_to_kx(const std::array<T, 6>& weights) {
  Executor executor(1);
  const Linear linear(MatrixView<const T>(weights.data(), 2, 3), kBias);
  std::vector<float> y(4);
  linear.apply({executor}, {kX.data(), 2, 3}, {y.data(), 2, 2});
  std::vector<float> reference(4);
  apply_linear_reference(linear, {kX.data(), 2, 3}, {reference.data(), 2, 2});
  EXPECT_EQ(reference, y);
  return y;
}

TEST(Linear, MultipliesDenseWeightsAndAddsTheBias) {
  const std::vector<float> expected(kExpected.begin(), kExpected.end());
  std::array<BFloat16, 6> bfloat16s;
  std::array<Half, 6> halves;
  for (std::size_t i = 0; i < 6; ++i) {
    bfloat16s[i] = to_bfloat16(kWeights[i]);
    halves[i] = to_half(kWeights[i]);
  }
  EXPECT_EQ(apply_to_kx(kWeights), expected);
  EXPECT_EQ(apply_to_kx(bfloat16s), expected);
  EXPECT_EQ(apply_to_kx(halves), expected);
}

TEST(Linear, RejectsABiasOfAnotherLength) {
  EXPECT_THROW(Linear(MatrixView<const float>(kWeights.data(), 2, 3), std::span(kBias).first(1)),
               Error);
}

}  // namespace
}  // namespace clefkit
