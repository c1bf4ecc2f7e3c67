#include "clefkit/kernels/linear.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "clefkit/base/error.h"
#include "clefkit/kernels/every_target.h"

namespace clefkit {
namespace {

// Powers of two and small integers: every form holds them exactly, so results are exact too.
const std::array<float, 6> kWeights{1, 2, 3, -1, 0.5f, 4};  // [2, 3]
const std::array<float, 6> kX{1, 10, 100, 2, 0, -2};        // [2, 3]
const std::array<float, 2> kBias{1000, -1000};
const std::vector<float> kExpected{1321, -596, 996, -1010};  // By hand.

template <typename T>
void expect_hand_result(const std::array<T, 6>& weights) {
  const Linear linear(MatrixView<const T>(weights.data(), 2, 3), kBias);
  std::vector<float> reference(4);
  apply_linear_reference(linear, {kX.data(), 2, 3}, {reference.data(), 2, 2});
  EXPECT_EQ(reference, kExpected);
  for_every_target([&] {
    Executor executor(1);
    std::vector<float> y(4);
    linear.apply({executor}, {kX.data(), 2, 3}, {y.data(), 2, 2});
    EXPECT_EQ(y, kExpected);
  });
}

TEST(Linear, MultipliesAndAddsTheBias) {
  std::array<BFloat16, 6> bfloat16s;
  std::array<Half, 6> halves;
  for (std::size_t i = 0; i < 6; ++i) {
    bfloat16s[i] = to_bfloat16(kWeights[i]);
    halves[i] = to_half(kWeights[i]);
  }
  expect_hand_result(kWeights);
  expect_hand_result(bfloat16s);
  expect_hand_result(halves);
}

TEST(Linear, RejectsABiasOfAnotherLengthAndNoWeights) {
  EXPECT_THROW(Linear(MatrixView<const float>(kWeights.data(), 2, 3), std::span(kBias).first(1)),
               Error);
  EXPECT_THROW(Linear(MatrixView<const float>(kWeights.data(), 2, 0)), Error);
  EXPECT_THROW(Linear(MatrixView<const float>(kWeights.data(), 0, 3)), Error);
}

enum class Form { kFloat, kBFloat16, kHalf, kLut6 };
constexpr Form kForms[] = {Form::kFloat, Form::kBFloat16, Form::kHalf, Form::kLut6};

struct Size {
  std::size_t tokens;
  std::size_t out_features;
  std::size_t in_features;
  std::size_t rows_per_palette = 1;
};

// A layer with random weights. Buffers end where the matrix ends, so that the address sanitizer
// sees a read past it.
struct RandomLayer {
  RandomLayer(Form form, const Size& size, bool with_bias) {
    std::mt19937 random(static_cast<unsigned>(size.out_features * 7919 + size.in_features));
    std::normal_distribution<float> normal(0.0f, 0.25f);
    const std::size_t count = size.out_features * size.in_features;
    if (with_bias) {
      for (std::size_t i = 0; i < size.out_features; ++i) bias.push_back(normal(random));
    }
    if (form == Form::kLut6) {
      packed.resize(count / 4 * 3);
      for (std::uint8_t& byte : packed) byte = static_cast<std::uint8_t>(random());
      palettes.resize(size.out_features / size.rows_per_palette * Lut6Matrix::kPaletteSize);
      for (Half& entry : palettes) entry = to_half(normal(random));
      linear = Linear(Lut6Matrix({.rows = size.out_features,
                                  .columns = size.in_features,
                                  .rows_per_palette = size.rows_per_palette},
                                 packed, palettes),
                      bias);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const float value = normal(random);
      if (form == Form::kFloat) floats.push_back(value);
      if (form == Form::kBFloat16) bfloat16s.push_back(to_bfloat16(value));
      if (form == Form::kHalf) halves.push_back(to_half(value));
    }
    floats.shrink_to_fit();
    bfloat16s.shrink_to_fit();
    halves.shrink_to_fit();
    if (form == Form::kFloat) linear = dense(floats, size);
    if (form == Form::kBFloat16) linear = dense(bfloat16s, size);
    if (form == Form::kHalf) linear = dense(halves, size);
  }

  template <typename T>
  Linear dense(const std::vector<T>& values, const Size& size) const {
    return Linear(MatrixView<const T>(values.data(), size.out_features, size.in_features), bias);
  }

  std::vector<float> bias;
  std::vector<float> floats;
  std::vector<BFloat16> bfloat16s;
  std::vector<Half> halves;
  std::vector<std::uint8_t> packed;
  std::vector<Half> palettes;
  Linear linear;
};

std::vector<float> random_values(std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> product_of(const Linear& linear, const std::vector<float>& x,
                              std::size_t threads = 1) {
  Executor executor(threads);
  const std::size_t tokens = x.size() / linear.in_features();
  std::vector<float> y(tokens * linear.out_features());
  linear.apply({executor}, {x.data(), tokens, linear.in_features()},
               {y.data(), tokens, linear.out_features()});
  return y;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// |x| · |W|ᵀ: errors of float32 sums are proportional to it.
std::vector<float> magnitudes(const Linear& linear, const std::vector<float>& x) {
  std::vector<float> absolute_x(x);
  for (float& value : absolute_x) value = std::fabs(value);
  std::vector<float> weights(linear.out_features() * linear.in_features());
  std::vector<float> identity(linear.in_features() * linear.in_features());
  for (std::size_t i = 0; i < linear.in_features(); ++i) identity[i * linear.in_features() + i] = 1;
  std::vector<float> columns(weights.size());
  const Linear unbiased(linear.weight());
  apply_linear_reference(unbiased, {identity.data(), linear.in_features(), linear.in_features()},
                         {columns.data(), linear.in_features(), linear.out_features()});
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::fabs(
        columns[i % linear.in_features() * linear.out_features() + i / linear.in_features()]);
  std::vector<float> result(x.size() / linear.in_features() * linear.out_features());
  apply_linear_reference(
      Linear(MatrixView<const float>(weights.data(), linear.out_features(), linear.in_features())),
      {absolute_x.data(), x.size() / linear.in_features(), linear.in_features()},
      {result.data(), x.size() / linear.in_features(), linear.out_features()});
  return result;
}

void expect_matches_reference(Form form, const Size& size) {
  SCOPED_TRACE("form " + std::to_string(static_cast<int>(form)) + ", " +
               std::to_string(size.tokens) + " tokens, " + std::to_string(size.out_features) + "x" +
               std::to_string(size.in_features));
  const RandomLayer layer(form, size, size.out_features % 2 == 0);
  const std::vector<float> x = random_values(size.tokens * size.in_features);
  std::vector<float> reference(size.tokens * size.out_features);
  apply_linear_reference(layer.linear, {x.data(), size.tokens, size.in_features},
                         {reference.data(), size.tokens, size.out_features});
  const std::vector<float> scale = magnitudes(layer.linear, x);
  // The bound of a sum of n rounded products, with room for the bias and the reference's rounding.
  const float relative = static_cast<float>(size.in_features + 3) * 0x1p-24f;
  for_every_target([&] {
    const std::vector<float> y = product_of(layer.linear, x);
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], reference[i], relative * (scale[i] + 1.0f)) << "at " << i;
  });
}

TEST(Linear, MatchesTheReferenceForAnyNumberOfTokens) {
  std::vector<std::size_t> counts{63, 64, 65, 127, 128, 129, 130, 513};
  for (std::size_t count = 1; count <= 26; ++count) counts.push_back(count);
  for (const std::size_t count : counts) {
    for (const Form form : kForms)
      expect_matches_reference(
          form, {.tokens = count, .out_features = 24, .in_features = 36, .rows_per_palette = 8});
  }
}

TEST(Linear, MatchesTheReferenceForAnyNumberOfInputs) {
  std::vector<std::size_t> counts{251, 252, 255, 256, 257, 260, 264, 508, 511, 512, 513, 516, 776};
  for (std::size_t count = 1; count <= 70; ++count) counts.push_back(count);
  for (const std::size_t count : counts) {
    for (const Form form : kForms) {
      if (form == Form::kLut6 && count % 4 != 0) continue;
      expect_matches_reference(
          form, {.tokens = 7, .out_features = 16, .in_features = count, .rows_per_palette = 16});
    }
  }
}

TEST(Linear, MatchesTheReferenceForAnyNumberOfOutputs) {
  for (std::size_t count = 1; count <= 70; ++count) {
    for (const Form form : kForms)
      expect_matches_reference(
          form, {.tokens = 5, .out_features = count, .in_features = 44, .rows_per_palette = count});
  }
}

TEST(Linear, MatchesTheReferenceForPalettesOfAnyNumberOfRows) {
  for (const std::size_t rows : {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}) {
    expect_matches_reference(
        Form::kLut6,
        {.tokens = 5, .out_features = 48, .in_features = 300, .rows_per_palette = rows});
  }
}

// One input of 1 gives the weights themselves.
template <typename T>
void expect_exact_decoding() {
  std::vector<T> all(std::size_t{1} << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  const Linear linear(MatrixView<const T>(all.data(), all.size(), 1));
  for_every_target([&] {
    const std::vector<float> y = product_of(linear, {1.0f});
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float expected = to_float(all[i]);
      ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)))
          << "bits " << i << ": " << y[i] << ", expected " << expected;
    }
  });
}

TEST(Linear, DecodesEvery16BitWeightExactly) {
  expect_exact_decoding<BFloat16>();
  expect_exact_decoding<Half>();
}

// Large enough that channels and tokens are cut into several tasks.
constexpr Size kManyTasks{
    .tokens = 150, .out_features = 400, .in_features = 520, .rows_per_palette = 16};

TEST(Linear, GivesARowTheSameBitsWhateverRowsAreBesideIt) {
  for (const Form form : kForms) {
    const RandomLayer layer(form, kManyTasks, true);
    const std::vector<float> x = random_values(kManyTasks.tokens * kManyTasks.in_features);
    for_every_target([&] {
      const std::vector<float> all = product_of(layer.linear, x);
      for (const auto& [first, count] :
           {std::pair<std::size_t, std::size_t>{0, 1}, {149, 1}, {3, 2}, {10, 5}, {31, 19}}) {
        const std::vector<float> some_x(
            x.begin() + static_cast<std::ptrdiff_t>(first * kManyTasks.in_features),
            x.begin() + static_cast<std::ptrdiff_t>((first + count) * kManyTasks.in_features));
        EXPECT_TRUE(same_bits(product_of(layer.linear, some_x),
                              std::span(all).subspan(first * kManyTasks.out_features,
                                                     count * kManyTasks.out_features)))
            << count << " from " << first;
      }
    });
  }
}

TEST(Linear, GivesTheSameBitsForEveryNumberOfThreads) {
  for (const Form form : kForms) {
    const RandomLayer layer(form, kManyTasks, true);
    const std::vector<float> x = random_values(kManyTasks.tokens * kManyTasks.in_features);
    const std::vector<float> one = product_of(layer.linear, x, 1);
    EXPECT_TRUE(same_bits(product_of(layer.linear, x, 2), one));
    EXPECT_TRUE(same_bits(product_of(layer.linear, x, 3), one));
  }
}

TEST(Linear, KeepsInfinityAndNanInTheirRow) {
  const Size size{.tokens = 29, .out_features = 32, .in_features = 64, .rows_per_palette = 16};
  for (const Form form : kForms) {
    const RandomLayer layer(form, size, true);
    std::vector<float> x = random_values(size.tokens * size.in_features);
    for_every_target([&] {
      const std::vector<float> clean = product_of(layer.linear, x);
      std::vector<float> dirty_x(x);
      dirty_x[7 * size.in_features + 5] = std::numeric_limits<float>::quiet_NaN();
      dirty_x[20 * size.in_features] = std::numeric_limits<float>::infinity();
      const std::vector<float> dirty = product_of(layer.linear, dirty_x);
      for (std::size_t i = 0; i < dirty.size(); ++i) {
        const std::size_t row = i / size.out_features;
        if (row == 7) {
          EXPECT_TRUE(std::isnan(dirty[i]));
        } else if (row == 20) {
          EXPECT_FALSE(std::isfinite(dirty[i]));
        } else {
          EXPECT_EQ(dirty[i], clean[i]);
        }
      }
    });
  }
}

TEST(Linear, ReadsAndWritesStridedRows) {
  constexpr std::size_t kTokens = 9, kIn = 21, kOut = 13, kStride = 30;
  const std::vector<float> values = random_values(kOut * kStride);
  const std::vector<float> wide_x = random_values(kTokens * kStride);
  std::vector<float> tight_values;
  std::vector<float> tight_x;
  for (std::size_t row = 0; row < kOut; ++row)
    tight_values.insert(tight_values.end(), &values[row * kStride], &values[row * kStride] + kIn);
  for (std::size_t row = 0; row < kTokens; ++row)
    tight_x.insert(tight_x.end(), &wide_x[row * kStride], &wide_x[row * kStride] + kIn);
  const Linear tight(MatrixView<const float>(tight_values.data(), kOut, kIn));
  const Linear strided(MatrixView<const float>(values.data(), kOut, kIn, kStride));
  const std::vector<float> expected = product_of(tight, tight_x);

  Executor executor(1);
  std::vector<float> y(kTokens * kStride, -7.0f);
  strided.apply({executor}, {wide_x.data(), kTokens, kIn, kStride},
                {y.data(), kTokens, kOut, kStride});

  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t column = i % kStride;
    EXPECT_EQ(y[i], column < kOut ? expected[i / kStride * kOut + column] : -7.0f);
  }
}

TEST(Linear, AppliesSeveralLayersToOneX) {
  const Size sizes[] = {{.tokens = 40, .out_features = 96, .in_features = 300},
                        {.tokens = 40, .out_features = 5, .in_features = 300},
                        {.tokens = 40, .out_features = 33, .in_features = 300}};
  const RandomLayer layers[] = {{Form::kLut6, sizes[0], false},
                                {Form::kBFloat16, sizes[1], true},
                                {Form::kFloat, sizes[2], true}};
  const std::vector<float> x = random_values(40 * 300);
  std::vector<std::vector<float>> ys;
  std::vector<LinearOutput> outputs;
  for (const RandomLayer& layer : layers) {
    ys.emplace_back(40 * layer.linear.out_features());
    outputs.push_back({&layer.linear, {ys.back().data(), 40, layer.linear.out_features()}});
  }
  Executor executor(2);

  apply_linears({executor}, {x.data(), 40, 300}, outputs);

  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(same_bits(ys[i], product_of(layers[i].linear, x)));
}

TEST(Linear, AcceptsNoTokens) {
  EXPECT_TRUE(product_of(Linear(MatrixView(kX.data(), 2, 3)), {}).empty());
}

TEST(Linear, StopsWhenCancelled) {
  CancelToken token;
  token.cancel();
  Executor executor(2);
  const Linear linear(MatrixView<const float>(kWeights.data(), 2, 3));
  std::vector<float> y(4);
  try {
    linear.apply({executor, &token}, {kX.data(), 2, 3}, {y.data(), 2, 2});
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace clefkit
