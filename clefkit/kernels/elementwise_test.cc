#include "clefkit/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "clefkit/kernels/every_target.h"
#include "clefkit/kernels/random_matrix.h"

namespace clefkit {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const std::size_t kOddSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 72, 127, 257};

double sigmoid_in_double(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double gelu_erf_in_double(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

double gelu_tanh_in_double(double x) {
  const double pi = std::acos(-1.0);
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / pi) * (x + 0.044715 * x * x * x)));
}

// `function` of x and y against `expected` of their elements, over odd shapes and wide ranges.
void expect_elementwise(const std::function<void(const ComputeContext&, MatrixView<float>,
                                                 MatrixView<const float>)>& function,
                        const std::function<double(double, double)>& expected, double relative,
                        double absolute) {
  for_every_target([&] {
    Executor executor(2);
    for (const std::size_t columns : kOddSizes) {
      for (const float range : {1.0f, 8.0f, 60.0f}) {
        const std::size_t rows = columns < 100 ? 3 : 300;
        RandomMatrix x(rows, columns, 1, -range, range, columns % 3);
        const RandomMatrix y(rows, columns, 2, -range, range, columns % 2);
        const RandomMatrix before = x;
        function({executor}, x.view(), y.view());
        for (std::size_t row = 0; row < rows; ++row) {
          for (std::size_t i = 0; i < columns; ++i) {
            const double want = expected(before.view().row(row)[i], y.view().row(row)[i]);
            ASSERT_NEAR(x.view().row(row)[i], want, absolute + relative * std::abs(want))
                << "columns " << columns << ", x = " << before.view().row(row)[i];
          }
        }
      }
    }
  });
}

TEST(Elementwise, SiluMultiplyMatchesDouble) {
  expect_elementwise(
      silu_multiply, [](double x, double y) { return x * sigmoid_in_double(x) * y; }, 1e-6, 1e-30);
}

TEST(Elementwise, SigmoidMultiplyMatchesDouble) {
  expect_elementwise(
      sigmoid_multiply, [](double x, double y) { return x * sigmoid_in_double(y); }, 1e-6, 1e-30);
}

TEST(Elementwise, GeluErfMatchesDouble) {
  expect_elementwise([](const ComputeContext& context, MatrixView<float> x,
                        MatrixView<const float>) { gelu_erf(context, x); },
                     [](double x, double) { return gelu_erf_in_double(x); }, 5e-7, 5e-7);
}

TEST(Elementwise, GeluTanhMatchesDouble) {
  expect_elementwise([](const ComputeContext& context, MatrixView<float> x,
                        MatrixView<const float>) { gelu_tanh(context, x); },
                     [](double x, double) { return gelu_tanh_in_double(x); }, 1e-6, 5e-7);
}

TEST(Elementwise, AddMatchesDouble) {
  expect_elementwise(
      add, [](double x, double y) { return x + y; }, 1e-7, 1e-7);
}

// Relative accuracy where the result is small: the tail that 1 + erf(x) would lose.
TEST(Elementwise, GeluErfKeepsTheDigitsOfItsTail) {
  for_every_target([&] {
    Executor executor(1);
    std::vector<float> x;
    for (int i = 0; i <= 500; ++i) x.push_back(-0.01f * static_cast<float>(i));
    auto result = x;
    gelu_erf({executor}, {result.data(), 1, result.size()});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = gelu_erf_in_double(x[i]);
      EXPECT_NEAR(result[i], want, 3e-6 * std::abs(want)) << x[i];
    }
  });
}

TEST(Elementwise, LargeMagnitudesReachTheirLimits) {
  for_every_target([&] {
    Executor executor(1);
    const std::vector<float> ones(4, 1.0f);
    const std::vector<float> x{-1e30f, -100.0f, 100.0f, 1e30f};
    auto silu = x, erf = x, tanh = x;
    silu_multiply({executor}, {silu.data(), 1, 4}, {ones.data(), 1, 4});
    gelu_erf({executor}, {erf.data(), 1, 4});
    gelu_tanh({executor}, {tanh.data(), 1, 4});
    for (const auto& result : {silu, erf, tanh}) {
      EXPECT_NEAR(result[0], 0.0f, 1e-7f);
      EXPECT_NEAR(result[1], 0.0f, 1e-7f);
      EXPECT_EQ(result[2], 100.0f);
      EXPECT_EQ(result[3], 1e30f);
    }
  });
}

TEST(Elementwise, NaNAndInfinityStayVisible) {
  for_every_target([&] {
    Executor executor(1);
    for (const float bad : {kNaN, kInfinity}) {
      for (const std::size_t columns : kOddSizes) {
        for (const std::size_t where : {std::size_t{0}, columns / 2, columns - 1}) {
          const RandomMatrix y(1, columns, 3, 0.5f, 1.0f);
          RandomMatrix x(1, columns, 4);
          x.values()[where] = bad;
          const auto result_of = [&](const auto& function) {
            RandomMatrix copy = x;
            function(copy.view());
            return has_non_finite(copy.view().row(0));
          };
          const ComputeContext context{executor};
          EXPECT_TRUE(result_of([&](auto m) { silu_multiply(context, m, y.view()); }));
          EXPECT_TRUE(result_of([&](auto m) { sigmoid_multiply(context, m, y.view()); }));
          EXPECT_TRUE(result_of([&](auto m) { gelu_erf(context, m); }));
          EXPECT_TRUE(result_of([&](auto m) { gelu_tanh(context, m); }));
          EXPECT_TRUE(result_of([&](auto m) { add(context, m, y.view()); }));
          EXPECT_TRUE(result_of([&](auto m) { rms_norm(context, m, y.view().row(0), 1e-6f, m); }));
          EXPECT_TRUE(result_of(
              [&](auto m) { layer_norm(context, m, y.view().row(0), y.view().row(0), 1e-6f, m); }));
          EXPECT_TRUE(result_of([&](auto m) { softmax(m.row(0)); }));
        }
      }
    }
  });
}

TEST(Elementwise, RmsNormMatchesDouble) {
  for_every_target([&] {
    Executor executor(2);
    for (const std::size_t columns : {1, 5, 32, 33, 128, 257, 4096}) {
      const RandomMatrix x(5, columns, 5, -3.0f, 3.0f, 2);
      const RandomMatrix multiplier(1, columns, 6);
      RandomMatrix out(5, columns, 7, 0.0f, 1.0f, 1);
      rms_norm({executor}, x.view(), multiplier.view().row(0), 1e-6f, out.view());
      for (std::size_t row = 0; row < 5; ++row) {
        double square_sum = 0.0;
        for (const float value : x.view().row(row)) square_sum += double{value} * value;
        const double factor =
            1.0 / std::sqrt(square_sum / static_cast<double>(columns) + double{1e-6f});
        for (std::size_t i = 0; i < columns; ++i) {
          const double want = x.view().row(row)[i] * factor * multiplier.view().row(0)[i];
          ASSERT_NEAR(out.view().row(row)[i], want, 1e-6 * std::abs(want));
        }
      }
    }
  });
}

TEST(Elementwise, LayerNormMatchesDoubleEvenFarFromZero) {
  for_every_target([&] {
    Executor executor(2);
    for (const std::size_t columns : {1, 5, 33, 64, 257, 1152}) {
      for (const float offset : {0.0f, 1000.0f}) {
        RandomMatrix x(5, columns, 8, offset - 1.0f, offset + 1.0f, 3);
        const RandomMatrix weight(1, columns, 9), bias(1, columns, 10);
        const RandomMatrix before = x;
        layer_norm({executor}, x.view(), weight.view().row(0), bias.view().row(0), 1e-5f, x.view());
        for (std::size_t row = 0; row < 5; ++row) {
          const auto values = before.view().row(row);
          double mean = 0.0, variance = 0.0;
          for (const float value : values) mean += value;
          mean /= static_cast<double>(columns);
          for (const float value : values) variance += (value - mean) * (value - mean);
          variance /= static_cast<double>(columns);
          const double factor = 1.0 / std::sqrt(variance + double{1e-5f});
          for (std::size_t i = 0; i < columns; ++i) {
            const double want =
                (values[i] - mean) * factor * weight.view().row(0)[i] + bias.view().row(0)[i];
            ASSERT_NEAR(x.view().row(row)[i], want, 2e-6) << columns << " at " << offset;
          }
        }
      }
    }
  });
}

TEST(Elementwise, RowsAreTheSameBitsAloneAndAmongOthers) {
  for_every_target([&] {
    Executor one(1), two(2);
    RandomMatrix all(700, 129, 11);
    RandomMatrix alone = all;
    const RandomMatrix up(700, 129, 12);
    silu_multiply({two}, all.view(), up.view());
    rms_norm({two}, all.view(), up.view().row(0), 1e-6f, all.view());
    for (std::size_t row = 0; row < 700; ++row) {
      const auto view = alone.view().rows_from(row, 1);
      silu_multiply({one}, view, up.view().rows_from(row, 1));
      rms_norm({one}, view, up.view().row(0), 1e-6f, view);
    }
    EXPECT_EQ(all.values(), alone.values());
  });
}

TEST(Elementwise, SoftmaxMatchesDouble) {
  for_every_target([&] {
    for (const std::size_t count : kOddSizes) {
      RandomMatrix x(1, count, 13, -90.0f, 90.0f);
      const RandomMatrix before = x;
      softmax(x.view().row(0));
      double maximum = -1e300, sum = 0.0;
      for (const float value : before.view().row(0)) maximum = std::max<double>(maximum, value);
      for (const float value : before.view().row(0)) sum += std::exp(value - maximum);
      for (std::size_t i = 0; i < count; ++i) {
        const double want = std::exp(before.view().row(0)[i] - maximum) / sum;
        EXPECT_NEAR(x.view().row(0)[i], want, 1e-6 * want + 1e-37);
      }
    }
    std::vector<float> single{-5.0f}, none;
    softmax(single);
    softmax(none);
    EXPECT_EQ(single[0], 1.0f);
  });
}

TEST(Elementwise, DotMatchesDouble) {
  for_every_target([&] {
    for (const std::size_t count : kOddSizes) {
      const RandomMatrix a(1, count, 14), b(1, count, 15);
      double want = 0.0, size = 0.0;
      for (std::size_t i = 0; i < count; ++i) {
        const double product = double{a.view().row(0)[i]} * b.view().row(0)[i];
        want += product;
        size += std::abs(product);
      }
      EXPECT_NEAR(dot(a.view().row(0), b.view().row(0)), want, 3e-7 * size);
    }
    EXPECT_EQ(dot({}, {}), 0.0f);
  });
}

TEST(Elementwise, FindsANonFiniteValueAnywhere) {
  for_every_target([&] {
    for (const std::size_t count : kOddSizes) {
      std::vector<float> values(count, std::numeric_limits<float>::max());
      EXPECT_FALSE(has_non_finite(values));
      for (std::size_t i = 0; i < count; ++i) {
        for (const float bad : {kNaN, kInfinity, -kInfinity}) {
          values[i] = bad;
          EXPECT_TRUE(has_non_finite(values)) << i << " of " << count;
        }
        values[i] = -std::numeric_limits<float>::max();
      }
    }
    EXPECT_FALSE(has_non_finite({}));
  });
}

TEST(Elementwise, SoftplusReturnsItsArgumentAbove20) {
  EXPECT_EQ(softplus(20.5f), 20.5f);
  EXPECT_NEAR(softplus(0.0f), std::log(2.0), 1e-7);
  EXPECT_NEAR(softplus(-30.0f), std::exp(-30.0), 1e-19);
}

}  // namespace
}  // namespace clefkit
