#include "clefkit/kernels/delta_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "clefkit/kernels/elementwise.h"
#include "clefkit/kernels/every_target.h"
#include "clefkit/kernels/random_matrix.h"

namespace clefkit {
namespace {

// Random inputs as the model makes them: q and k of unit length, q scaled, β in (0, 1).
struct Tensors {
  Tensors(const DeltaRuleShape& s, std::size_t tokens, float lowest_g = -1.0f, unsigned seed = 1)
      : shape(s),
        q(tokens, s.key_heads * s.key_head_dim, seed, -1.0f, 1.0f, 3),
        k(tokens, s.key_heads * s.key_head_dim, seed + 1, -0.7f, 1.0f, 1),
        v(tokens, s.value_heads * s.value_head_dim, seed + 2, -2.0f, 2.0f, 2),
        beta(tokens, s.value_heads, seed + 3, 0.0f, 1.0f),
        g(tokens, s.value_heads, seed + 4, lowest_g, 0.0f, 1),
        state(1, s.state_size(), seed + 5, -0.5f, 0.5f),
        out(tokens, s.value_heads * s.value_head_dim, seed + 6, 7.0f, 8.0f, 5),
        expected_state(state),
        expected(out) {
    normalize(q, 1.0 / std::sqrt(static_cast<double>(s.key_head_dim)));
    normalize(k, 1.0);
  }

  void normalize(RandomMatrix& matrix, double scale) const {
    for (std::size_t row = 0; row < matrix.view().rows; ++row) {
      for (std::size_t head = 0; head < shape.key_heads; ++head) {
        const auto values =
            matrix.view().row(row).subspan(head * shape.key_head_dim, shape.key_head_dim);
        double sum = 1e-6;
        for (const float value : values) sum += double{value} * value;
        for (float& value : values) value = static_cast<float>(value * scale / std::sqrt(sum));
      }
    }
  }

  DeltaRuleInput input(std::size_t first, std::size_t count) const {
    return {.q = q.view().rows_from(first, count),
            .k = k.view().rows_from(first, count),
            .v = v.view().rows_from(first, count),
            .beta = beta.view().rows_from(first, count),
            .g = g.view().rows_from(first, count)};
  }
  void run(Executor& executor, std::size_t first, std::size_t count) {
    delta_rule({executor}, shape, input(first, count), state.values(),
               out.view().rows_from(first, count));
  }
  void run_reference() {
    delta_rule_reference(shape, input(0, out.view().rows), expected_state.values(),
                         expected.view());
  }

  DeltaRuleShape shape;
  RandomMatrix q, k, v, beta, g, state, out, expected_state, expected;
};

// Errors are measured against the root mean square of what is compared.
void expect_near(const RandomMatrix& actual, const RandomMatrix& expected, double tolerance) {
  double square_sum = 0.0;
  for (std::size_t row = 0; row < expected.view().rows; ++row) {
    for (const float value : expected.view().row(row)) square_sum += double{value} * value;
  }
  const auto count = static_cast<double>(expected.view().rows * expected.view().columns);
  const double limit = tolerance * std::sqrt(square_sum / count) + 1e-30;
  for (std::size_t row = 0; row < expected.view().rows; ++row) {
    for (std::size_t i = 0; i < expected.view().columns; ++i) {
      ASSERT_NEAR(actual.view().row(row)[i], expected.view().row(row)[i], limit)
          << "row " << row << ", column " << i;
    }
  }
}

const DeltaRuleShape kShapes[] = {
    {.key_heads = 2, .value_heads = 4, .key_head_dim = 16, .value_head_dim = 16},
    {.key_heads = 2, .value_heads = 6, .key_head_dim = 128, .value_head_dim = 128},
    {.key_heads = 1, .value_heads = 1, .key_head_dim = 16, .value_head_dim = 32},
    {.key_heads = 1, .value_heads = 3, .key_head_dim = 32, .value_head_dim = 16},
    {.key_heads = 3, .value_heads = 3, .key_head_dim = 7, .value_head_dim = 21},
    {.key_heads = 1, .value_heads = 2, .key_head_dim = 40, .value_head_dim = 1},
};

TEST(DeltaRule, MatchesTheRecurrenceAtSubChunkEdges) {
  for_every_target([&] {
    Executor executor(2);
    for (const DeltaRuleShape& shape : kShapes) {
      for (const std::size_t tokens : {1, 2, 5, 6, 7, 63, 64, 65, 127, 128, 129}) {
        SCOPED_TRACE(tokens);
        Tensors t(shape, tokens);
        t.run(executor, 0, tokens);
        t.run_reference();
        expect_near(t.out, t.expected, 5e-6);
        expect_near(t.state, t.expected_state, 5e-6);
      }
    }
  });
}

TEST(DeltaRule, MatchesTheRecurrenceWithTheReleasesHeads) {
  Executor executor(2);
  Tensors t({.key_heads = 16, .value_heads = 48, .key_head_dim = 128, .value_head_dim = 128}, 70);
  t.run(executor, 0, 70);
  t.run_reference();
  expect_near(t.out, t.expected, 5e-6);
  expect_near(t.state, t.expected_state, 5e-6);
}

TEST(DeltaRule, CarriesItsStateOverCalls) {
  for_every_target([&] {
    Executor executor(2);
    std::mt19937 generator(5);
    for (unsigned seed = 0; seed < 6; ++seed) {
      Tensors t(kShapes[seed], 200, -0.3f, 100 + seed);
      std::size_t first = 0;
      while (first < 200) {
        const std::size_t count = std::min<std::size_t>(200 - first, 1 + generator() % 90);
        t.run(executor, first, count);
        first += count;
      }
      t.run_reference();
      expect_near(t.out, t.expected, 1e-5);
      expect_near(t.state, t.expected_state, 1e-5);
    }
  });
}

TEST(DeltaRule, StrongDecayNeitherOverflowsNorLosesWhatFollowsIt) {
  for_every_target([&] {
    Executor executor(1);
    Tensors all(kShapes[0], 64), some(kShapes[0], 129, -0.1f);
    for (float& g : all.g.values()) g = -100.0f;
    // Every seventh token forgets; between them the log decays are small beside their sum.
    for (std::size_t row = 0; row < 129; row += 7) {
      for (float& g : some.g.view().row(row)) g = -1000.0f;
    }
    for (Tensors* const t : {&all, &some}) {
      t->run(executor, 0, t->out.view().rows);
      t->run_reference();
      expect_near(t->out, t->expected, 5e-6);
      expect_near(t->state, t->expected_state, 5e-6);
    }
  });
}

TEST(DeltaRule, NoDecayAndFullBetaMatchTheRecurrence) {
  for_every_target([&] {
    Executor executor(1);
    Tensors t(kShapes[1], 192);
    std::fill(t.g.values().begin(), t.g.values().end(), 0.0f);
    std::fill(t.beta.values().begin(), t.beta.values().end(), 1.0f);
    t.run(executor, 0, 192);
    t.run_reference();
    expect_near(t.out, t.expected, 5e-5);
    expect_near(t.state, t.expected_state, 5e-5);
  });
}

TEST(DeltaRule, BitsDoNotDependOnThreads) {
  Executor one(1), two(2);
  Tensors a(kShapes[1], 150), b(kShapes[1], 150);
  a.run(one, 0, 150);
  b.run(two, 0, 150);
  EXPECT_EQ(a.out.values(), b.out.values());
  EXPECT_EQ(a.state.values(), b.state.values());
}

TEST(DeltaRule, LeavesTheStateWithoutTokens) {
  Executor executor(1);
  Tensors t(kShapes[0], 0);
  t.run(executor, 0, 0);
  EXPECT_EQ(t.state.values(), t.expected_state.values());
}

TEST(DeltaRule, ANaNReachesTheResult) {
  for_every_target([&] {
    Executor executor(1);
    for (RandomMatrix Tensors::*const input :
         {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::beta, &Tensors::g}) {
      Tensors t(kShapes[2], 70);
      (t.*input).view().row(66)[0] = std::numeric_limits<float>::quiet_NaN();
      t.run(executor, 0, 70);
      EXPECT_TRUE(has_non_finite(t.out.view().row(66)));
      EXPECT_FALSE(has_non_finite(t.out.view().row(63)));
    }
  });
}

TEST(CausalConvSilu, MatchesDoubleOverCallsOfAnyLength) {
  for_every_target([&] {
    Executor executor(2);
    for (const std::size_t kernel : {1, 2, 4}) {
      for (const std::size_t channels : {1, 7, 32, 77}) {
        const std::size_t tokens = 20;
        const RandomMatrix x(tokens, channels, 1, -2.0f, 2.0f, 3);
        const RandomMatrix weight(channels, kernel, 2, -1.0f, 1.0f, 1);
        RandomMatrix state(1, (kernel - 1) * channels, 3);
        const RandomMatrix first_state = state;
        RandomMatrix out(tokens, channels, 4, 0.0f, 1.0f, 2);
        std::size_t first = 0;
        for (const std::size_t count : {1, 0, 2, 1, 3, 13}) {
          causal_conv_silu({executor}, x.view().rows_from(first, count), weight.view(),
                           state.values(), out.view().rows_from(first, count));
          first += count;
        }
        // Row t − (kernel − 1) of x, from the state before its start.
        const auto input = [&](std::size_t t, std::size_t c) -> double {
          return t < kernel - 1 ? first_state.view().row(0)[t * channels + c]
                                : x.view().row(t - (kernel - 1))[c];
        };
        for (std::size_t t = 0; t < tokens; ++t) {
          for (std::size_t c = 0; c < channels; ++c) {
            double sum = 0.0;
            for (std::size_t j = 0; j < kernel; ++j)
              sum += weight.view().row(c)[j] * input(t + j, c);
            ASSERT_NEAR(out.view().row(t)[c], sum / (1.0 + std::exp(-sum)), 1e-6);
          }
        }
        for (std::size_t j = 0; j + 1 < kernel; ++j) {
          for (std::size_t c = 0; c < channels; ++c) {
            ASSERT_EQ(state.values()[j * channels + c], x.view().row(tokens - (kernel - 1) + j)[c]);
          }
        }
      }
    }
  });
}

TEST(L2NormalizeHeads, AddsEpsToTheSumInsideTheRoot) {
  for_every_target([&] {
    Executor executor(2);
    for (const std::size_t head_dim : {1, 3, 16, 33, 128}) {
      RandomMatrix x(9, 3 * head_dim, 1, -1e-3f, 1e-3f, 2);
      const RandomMatrix before = x;
      l2_normalize_heads({executor}, x.view(), head_dim, 1e-6f, 0.25f);
      for (std::size_t row = 0; row < 9; ++row) {
        for (std::size_t column = 0; column < 3 * head_dim; ++column) {
          double sum = double{1e-6f};
          for (std::size_t i = 0; i < head_dim; ++i) {
            const double value = before.view().row(row)[column / head_dim * head_dim + i];
            sum += value * value;
          }
          const double want = before.view().row(row)[column] / std::sqrt(sum) * 0.25;
          ASSERT_NEAR(x.view().row(row)[column], want, 1e-6 * std::abs(want));
        }
      }
    }
  });
}

}  // namespace
}  // namespace clefkit
