#include "clefkit/kernels/lut6_linear.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "clefkit/kernels/linear.h"
#include "clefkit/kernels/lut6_test_matrix.h"

namespace clefkit {
namespace {

std::vector<float> random_activations(std::size_t tokens, std::size_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(tokens * columns);
  for (float& value : x) value = normal(random);
  // A few outlier channels fifty times as large, as language models have.
  for (std::size_t i = 0; i < columns / 340 + 1; ++i) {
    const std::size_t channel = random() % columns;
    for (std::size_t token = 0; token < tokens; ++token) x[token * columns + channel] *= 50.0f;
  }
  return x;
}

struct Options {
  Lut6Format format = Lut6Format::kInt16;
  std::size_t threads = 1;
  std::span<const float> bias = {};
};

std::vector<float> apply(const Lut6Kernels& kernels, const Lut6Matrix& matrix,
                         const std::vector<float>& x, const Options& options = {}) {
  const std::size_t columns = matrix.shape().columns, tokens = x.size() / columns;
  std::vector<float> y(tokens * matrix.shape().rows, -1.0f);
  Executor executor(options.threads);
  const Lut6Output output{&matrix, options.bias, {y.data(), tokens, matrix.shape().rows}};
  lut6_linear({executor}, kernels, options.format, {x.data(), tokens, columns}, {&output, 1});
  return y;
}

double relative_rmse(const Lut6Matrix& matrix, const std::vector<float>& x,
                     const std::vector<float>& y) {
  const std::size_t rows = matrix.shape().rows, columns = matrix.shape().columns;
  std::vector<float> weights(columns);
  double error = 0.0, energy = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    matrix.dequantize_row(row, weights);
    for (std::size_t token = 0; token < x.size() / columns; ++token) {
      double sum = 0.0;
      for (std::size_t i = 0; i < columns; ++i) {
        sum += static_cast<double>(x[token * columns + i]) * static_cast<double>(weights[i]);
      }
      const double difference = static_cast<double>(y[token * rows + row]) - sum;
      error += difference * difference;
      energy += sum * sum;
    }
  }
  return std::sqrt(error / energy);
}

constexpr Lut6Format kFormats[] = {Lut6Format::kInt16, Lut6Format::kInt8};

// All that run here, and panels of four groups.
std::vector<const Lut6Kernels*> all_kernels() {
  const auto supported = supported_lut6_kernels();
  std::vector<const Lut6Kernels*> kernels(supported.begin(), supported.end());
  kernels.push_back(&kLut6WideScalarKernels);
  return kernels;
}

const Lut6Kernels& fastest() { return *supported_lut6_kernels().front(); }

TEST(Lut6Linear, MultipliesByHand) {
  // Every weight 0.5 in group 0 and −2 in group 1; both exact, and so are powers of two in x.
  Lut6TestMatrix matrix = Lut6TestMatrix::random({32, 4, 16}, 1);
  std::fill(matrix.palettes.begin(), matrix.palettes.begin() + 64, to_half(0.5f));
  std::fill(matrix.palettes.begin() + 64, matrix.palettes.end(), to_half(-2.0f));
  std::vector<float> bias(32, 0.0f);
  bias[31] = 100.0f;
  const std::vector<float> y =
      apply(fastest(), matrix.view(), {1, 2, 3, 4, 8, 0, 0, 0}, {.bias = bias});
  ASSERT_EQ(y.size(), 64u);
  EXPECT_NEAR(y[0], 5.0f, 1e-3f);
  EXPECT_NEAR(y[15], 5.0f, 1e-3f);
  EXPECT_NEAR(y[16], -20.0f, 4e-3f);
  EXPECT_NEAR(y[31], 80.0f, 4e-3f);
  EXPECT_NEAR(y[32], 4.0f, 1e-3f);
  EXPECT_NEAR(y[63], 84.0f, 2e-3f);
}

TEST(Lut6Linear, EveryInstructionSetGivesTheBitsOfPlainLoops) {
  unsigned seed = 0;
  for (const std::size_t columns :
       {4, 12, 16, 20, 64, 76, 252, 256, 260, 264, 268, 272, 512, 1028}) {
    for (const std::size_t rows : {16, 32, 48, 80}) {
      for (const std::size_t tokens : {1, 2, 3, 4, 5, 6, 7, 13}) {
        const Lut6TestMatrix matrix = Lut6TestMatrix::random_on_grid({rows, columns, 16}, ++seed);
        const std::vector<float> x = random_activations(tokens, columns, seed);
        for (const Lut6Format format : kFormats) {
          const Options options{.format = format};
          const std::vector<float> expected = apply(kLut6ScalarKernels, matrix.view(), x, options);
          for (const Lut6Kernels* const kernels : all_kernels()) {
            ASSERT_EQ(apply(*kernels, matrix.view(), x, options), expected)
                << kernels->name << ' ' << rows << 'x' << columns << ", " << tokens << " tokens";
          }
        }
      }
    }
  }
}

TEST(Lut6Linear, StaysWithinTheErrorOfSixteenBits) {
  for (const std::size_t columns : {4096, 12288}) {
    const Lut6TestMatrix matrix = Lut6TestMatrix::random({32, columns, 16}, 5);
    const std::vector<float> x = random_activations(16, columns, 6);
    const double error = relative_rmse(matrix.view(), x, apply(fastest(), matrix.view(), x));
    EXPECT_LT(error, 2e-4) << columns;
    EXPECT_GT(error, 1e-5) << columns;  // Else this measured something else.
  }
}

TEST(Lut6Linear, StaysWithinTheErrorOfEightBitActivationsOnAGrid) {
  for (const std::size_t columns : {4096, 12288}) {
    const Lut6TestMatrix matrix = Lut6TestMatrix::random_on_grid({32, columns, 16}, 5, 1);
    const std::vector<float> x = random_activations(16, columns, 6);
    const Options options{.format = Lut6Format::kInt8};
    const double error =
        relative_rmse(matrix.view(), x, apply(fastest(), matrix.view(), x, options));
    EXPECT_LT(error, 1.6e-2) << columns;
    EXPECT_GT(error, 1e-3) << columns;
  }
}

TEST(Lut6Linear, TakesSixteenBitsForGroupsThatAreOnNoGrid) {
  Lut6TestMatrix matrix = Lut6TestMatrix::random_on_grid({96, 68, 16}, 22);  // Every second group.
  matrix.palettes[2 * 64] = to_half(0.123f);  // And group 2 is not where its scale says.
  const std::vector<float> x = random_activations(5, 68, 23);
  const std::vector<float> int16 = apply(fastest(), matrix.view(), x);
  const std::vector<float> int8 = apply(fastest(), matrix.view(), x, {.format = Lut6Format::kInt8});
  for (std::size_t i = 0; i < int16.size(); ++i) {
    const std::size_t group = i % 96 / 16;
    EXPECT_EQ(int16[i] == int8[i], group != 0 && group != 4) << i;
  }
}

TEST(Lut6Linear, SurvivesTheLargestSums) {
  // All weights at one end of their range and all activations alike: the case that could overflow.
  for (const int sign : {1, -1}) {
    Lut6TestMatrix matrix = Lut6TestMatrix::random_on_grid({16, 256, 16}, 24);
    const float largest = static_cast<float>(127 * sign) * matrix.grid_scales[0];
    std::fill(matrix.palettes.begin(), matrix.palettes.end(), to_half(largest));
    for (const float value : {1.0f, -1.0f}) {
      const std::vector<float> x(6 * 256, value);
      const float exact = largest * value * 256.0f;
      for (const Lut6Kernels* const kernels : all_kernels()) {
        for (const float y : apply(*kernels, matrix.view(), x)) {
          EXPECT_NEAR(y / exact, 1.0f, 1e-3f) << kernels->name;
        }
        for (const float y : apply(*kernels, matrix.view(), x, {.format = Lut6Format::kInt8})) {
          EXPECT_NEAR(y / exact, 1.0f, 2e-2f) << kernels->name;
        }
      }
    }
  }
}

TEST(Lut6Linear, GivesARowTheSameBitsAloneAndAmongOthers) {
  constexpr std::size_t kTokens = 517, kColumns = 132, kRows = 48;  // Two sweeps.
  const Lut6TestMatrix matrix = Lut6TestMatrix::random({kRows, kColumns, 16}, 7);
  const std::vector<float> x = random_activations(kTokens, kColumns, 8);
  const std::vector<float> all = apply(fastest(), matrix.view(), x);
  for (const std::size_t token : {0, 1, 5, 6, 511, 512, 516}) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(token * kColumns);
    const std::vector<float> alone = apply(fastest(), matrix.view(), {first, first + kColumns});
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(),
                           all.begin() + static_cast<std::ptrdiff_t>(token * kRows)))
        << token;
  }
}

TEST(Lut6Linear, DoesNotDependOnTheNumberOfThreads) {
  const Lut6TestMatrix matrix = Lut6TestMatrix::random({528, 320, 16}, 9);
  const std::vector<float> x = random_activations(37, 320, 10);
  const std::vector<float> expected = apply(fastest(), matrix.view(), x);
  for (const std::size_t threads : {2, 3, 5}) {
    EXPECT_EQ(apply(fastest(), matrix.view(), x, {.threads = threads}), expected);
  }
}

TEST(Lut6Linear, ComputesSeveralMatricesOfOneInput) {
  const Lut6TestMatrix one = Lut6TestMatrix::random({96, 260, 16}, 11);
  const Lut6TestMatrix two = Lut6TestMatrix::random({16, 260, 16}, 12);
  const std::vector<float> x = random_activations(9, 260, 13);
  const Lut6Matrix views[] = {one.view(), two.view()};
  std::vector<float> y1(9 * 96), y2(9 * 16);
  Executor executor(2);
  const Lut6Output outputs[] = {{&views[0], {}, {y1.data(), 9, 96}},
                                {&views[1], {}, {y2.data(), 9, 16}}};
  lut6_linear({executor}, fastest(), Lut6Format::kInt16, {x.data(), 9, 260}, outputs);
  EXPECT_EQ(y1, apply(fastest(), views[0], x));
  EXPECT_EQ(y2, apply(fastest(), views[1], x));
}

TEST(Lut6Linear, LeavesWhatLiesBesideItsRowsAlone) {
  const Lut6TestMatrix matrix = Lut6TestMatrix::random({16, 8, 16}, 14);
  const Lut6Matrix view = matrix.view();
  const std::vector<float> x = random_activations(3, 10, 15);  // Rows of 8, two more between.
  std::vector<float> y(3 * 20, 7.0f);
  Executor executor(1);
  const Lut6Output output{&view, {}, {y.data(), 3, 16, 20}};
  lut6_linear({executor}, fastest(), Lut6Format::kInt16, {x.data(), 3, 8, 10}, {&output, 1});
  for (std::size_t token = 0; token < 3; ++token) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(token * 10);
    const std::vector<float> expected = apply(fastest(), view, {first, first + 8});
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(y[token * 20 + i], i < 16 ? expected[i] : 7.0f);
    }
  }
}

TEST(Lut6Linear, SharesAPaletteAmongSeveralGroups) {
  const Lut6TestMatrix shared = Lut6TestMatrix::random({64, 64, 32}, 16);
  Lut6TestMatrix repeated = shared;
  repeated.shape.rows_per_palette = 16;
  repeated.palettes.clear();
  for (const std::size_t group : {0, 0, 1, 1}) {
    const auto first = shared.palettes.begin() + static_cast<std::ptrdiff_t>(group * 64);
    repeated.palettes.insert(repeated.palettes.end(), first, first + 64);
  }
  const std::vector<float> x = random_activations(4, 64, 17);
  EXPECT_EQ(apply(fastest(), shared.view(), x), apply(fastest(), repeated.view(), x));
  EXPECT_FALSE(lut6_linear_supports({24, 64, 8}));
}

TEST(Lut6Linear, ShowsAnInfinityInItsTokenAndAPalettesNanInItsChannels) {
  Lut6TestMatrix matrix = Lut6TestMatrix::random({32, 128, 16}, 18);
  matrix.palettes[64 + 5] = Half{0x7E00};
  std::vector<float> x = random_activations(3, 128, 19);
  x[128 + 77] = std::numeric_limits<float>::infinity();
  const std::vector<float> y = apply(fastest(), matrix.view(), x);
  for (std::size_t token = 0; token < 3; ++token) {
    for (std::size_t channel = 0; channel < 32; ++channel) {
      EXPECT_EQ(std::isnan(y[token * 32 + channel]), token == 1 || channel >= 16);
    }
  }
}

TEST(Lut6Linear, ServesLinearLayersByTheirPrecision) {
  const Lut6TestMatrix matrix = Lut6TestMatrix::random_on_grid({48, 64, 16}, 25, 1);
  const Lut6TestMatrix narrow_groups = Lut6TestMatrix::random({48, 64, 8}, 26);
  const std::vector<float> x = random_activations(4, 64, 27);
  const std::vector<float> bias(48, 0.5f);
  const Linear exact(matrix.view(), bias), high(matrix.view(), bias, Precision::kHigh),
      fast(matrix.view(), bias, Precision::kFast),
      unsupported(narrow_groups.view(), bias, Precision::kHigh);
  const Linear* const layers[] = {&exact, &high, &fast, &unsupported};
  std::array<std::vector<float>, 4> y;
  std::vector<LinearOutput> outputs;
  for (std::size_t i = 0; i < 4; ++i) {
    y[i].resize(4 * 48);
    outputs.push_back({layers[i], {y[i].data(), 4, 48}});
  }
  Executor executor(2);
  apply_linears({executor}, {x.data(), 4, 64}, outputs);

  const double limits[] = {1e-6, 2e-4, 2e-2, 1e-6};
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<float> expected(4 * 48), alone(4 * 48);
    apply_linear_reference(*layers[i], {x.data(), 4, 64}, {expected.data(), 4, 48});
    double error = 0.0, energy = 0.0;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      error += std::pow(y[i][j] - expected[j], 2);
      energy += std::pow(expected[j], 2);
    }
    EXPECT_LT(std::sqrt(error / energy), limits[i]) << i;
    layers[i]->apply({executor}, {x.data(), 4, 64}, {alone.data(), 4, 48});
    EXPECT_EQ(alone, y[i]) << i;
  }
  if (fastest_lut6_kernels() != nullptr) {
    EXPECT_EQ(y[1], apply(fastest(), matrix.view(), x, {.bias = bias}));
    EXPECT_EQ(y[2],
              apply(fastest(), matrix.view(), x, {.format = Lut6Format::kInt8, .bias = bias}));
  }
}

// A file that ends with its page, behind which nothing may be read.
class IndicesAtTheEndOfAPage {
 public:
  explicit IndicesAtTheEndOfAPage(const std::vector<std::uint8_t>& indices) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t used = (indices.size() + page - 1) / page * page;
    size_ = used + page;
    void* const mapped =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return;
    memory_ = static_cast<std::uint8_t*>(mapped);
    mprotect(memory_ + used, page, PROT_NONE);
    bytes_ = {memory_ + used - indices.size(), indices.size()};
    std::memcpy(memory_ + used - indices.size(), indices.data(), indices.size());
  }
  ~IndicesAtTheEndOfAPage() { munmap(memory_, size_); }
  IndicesAtTheEndOfAPage(const IndicesAtTheEndOfAPage&) = delete;
  IndicesAtTheEndOfAPage& operator=(const IndicesAtTheEndOfAPage&) = delete;

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t size_ = 0;
  std::span<const std::uint8_t> bytes_;
};

TEST(Lut6Linear, ReadsNothingBehindTheIndices) {
  for (const std::size_t columns :
       {4, 8, 12, 16, 20, 24, 28, 60, 64, 68, 248, 252, 256, 260, 264, 268, 272, 276, 512}) {
    const Lut6TestMatrix matrix = Lut6TestMatrix::random({16, columns, 16}, 20);
    const IndicesAtTheEndOfAPage indices(matrix.packed_indices);
    const Lut6Matrix view(matrix.shape, indices.bytes(), matrix.palettes);
    const std::vector<float> x = random_activations(2, columns, 21);
    for (const Lut6Kernels* const kernels : all_kernels()) {
      EXPECT_EQ(apply(*kernels, view, x), apply(kLut6ScalarKernels, matrix.view(), x));
    }
  }
}

}  // namespace
}  // namespace clefkit
