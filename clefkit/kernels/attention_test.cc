#include "clefkit/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/kernels/elementwise.h"
#include "clefkit/kernels/every_target.h"
#include "clefkit/kernels/random_matrix.h"

namespace clefkit {
namespace {

struct Case {
  std::size_t query_heads, kv_heads, head_dim, past, tokens;
};

AttentionShape shape_of(const Case& c, float sharpness = 1.0f) {
  return {.query_heads = c.query_heads,
          .kv_heads = c.kv_heads,
          .head_dim = c.head_dim,
          .scale = sharpness / std::sqrt(static_cast<float>(c.head_dim))};
}

// Random q, keys, values of a case, with gaps between rows, and room for the result.
struct Tensors {
  explicit Tensors(const Case& c)
      : q(c.tokens, c.query_heads * c.head_dim, 1, -2.0f, 2.0f, 3),
        keys(c.past + c.tokens, c.kv_heads * c.head_dim, 2, -2.0f, 2.0f, 5),
        values(c.past + c.tokens, c.kv_heads * c.head_dim, 3, -1.0f, 1.0f, 1),
        out(c.tokens, c.query_heads * c.head_dim, 4, 7.0f, 7.5f, 2),
        expected(out) {}
  RandomMatrix q, keys, values, out, expected;
};

void expect_near(const RandomMatrix& actual, const RandomMatrix& expected, double tolerance,
                 const Case& c) {
  for (std::size_t row = 0; row < expected.view().rows; ++row) {
    for (std::size_t i = 0; i < expected.view().columns; ++i) {
      ASSERT_NEAR(actual.view().row(row)[i], expected.view().row(row)[i], tolerance)
          << c.query_heads << "/" << c.kv_heads << " heads of " << c.head_dim << ", past " << c.past
          << ", token " << row << " of " << c.tokens << ", column " << i;
    }
  }
}

const Case kCases[] = {
    {1, 1, 1, 0, 1},     {1, 1, 16, 0, 63},   {2, 1, 32, 1, 64},   {4, 2, 32, 0, 65},
    {4, 2, 33, 62, 3},   {6, 1, 40, 63, 2},   {6, 1, 64, 64, 129}, {16, 4, 256, 127, 33},
    {3, 3, 72, 100, 30}, {24, 4, 24, 60, 70}, {80, 1, 8, 5, 6},    {2, 2, 17, 300, 1},
};

TEST(Attention, CausalMatchesDouble) {
  for_every_target([&] {
    Executor executor(2);
    for (const Case& c : kCases) {
      Tensors t(c);
      causal_attention({executor}, shape_of(c), t.q.view(), t.keys.view(), t.values.view(),
                       t.out.view());
      attention_reference(shape_of(c), t.q.view(), t.keys.view(), t.values.view(),
                          static_cast<std::ptrdiff_t>(c.past), t.expected.view());
      expect_near(t.out, t.expected, 1e-6, c);
    }
  });
}

TEST(Attention, FullMatchesDouble) {
  for_every_target([&] {
    Executor executor(2);
    for (const Case& c : kCases) {
      Tensors t(c);
      full_attention({executor}, shape_of(c), t.q.view(), t.keys.view(), t.values.view(),
                     t.out.view());
      attention_reference(shape_of(c), t.q.view(), t.keys.view(), t.values.view(), -1,
                          t.expected.view());
      expect_near(t.out, t.expected, 1e-6, c);
    }
  });
}

// Scores far apart: the running maximum grows from block to block and earlier sums all but vanish.
TEST(Attention, SharpScoresMatchDouble) {
  for_every_target([&] {
    Executor executor(2);
    const Case c{4, 2, 64, 200, 40};
    Tensors t(c);
    const AttentionShape shape = shape_of(c, 60.0f);
    causal_attention({executor}, shape, t.q.view(), t.keys.view(), t.values.view(), t.out.view());
    attention_reference(shape, t.q.view(), t.keys.view(), t.values.view(), 200, t.expected.view());
    // A score of 300 carries 3e-5 of rounding into its weight.
    expect_near(t.out, t.expected, 1e-4, c);
  });
}

TEST(Attention, CausalRowsDoNotSeeLaterTokens) {
  for_every_target([&] {
    Executor executor(1);
    const Case c{4, 2, 32, 10, 130};
    Tensors t(c);
    const auto run = [&](RandomMatrix& out) {
      causal_attention({executor}, shape_of(c), t.q.view(), t.keys.view(), t.values.view(),
                       out.view());
    };
    run(t.out);
    for (const std::size_t token : {1, 15, 16, 53, 54, 55, 117, 118, 129}) {
      RandomMatrix keys = t.keys, out = t.out;
      for (float& value : t.keys.view().row(10 + token)) value = 50.0f;
      for (float& value : t.values.view().row(10 + token)) value = 1e6f;
      run(out);
      for (std::size_t row = 0; row < token; ++row) {
        for (std::size_t i = 0; i < 4 * 32; ++i) {
          ASSERT_EQ(out.view().row(row)[i], t.out.view().row(row)[i]) << row << " and " << token;
        }
      }
      EXPECT_NE(out.view().row(token)[0], t.out.view().row(token)[0]);
      t = Tensors(c);
      run(t.out);
    }
  });
}

TEST(Attention, BitsDoNotDependOnThreadsOrOnHowTheSequenceIsCut) {
  for_every_target([&] {
    const Case c{6, 2, 48, 20, 150};
    Tensors t(c);
    Executor one(1), two(2);
    causal_attention({two}, shape_of(c), t.q.view(), t.keys.view(), t.values.view(), t.out.view());
    std::size_t first = 0;
    for (const std::size_t tokens : {1, 63, 7, 64, 15}) {
      const std::size_t seen = 20 + first + tokens;
      causal_attention({one}, shape_of(c), t.q.view().rows_from(first, tokens),
                       t.keys.view().rows_from(0, seen), t.values.view().rows_from(0, seen),
                       t.expected.view().rows_from(first, tokens));
      first += tokens;
    }
    ASSERT_EQ(first, 150u);
    expect_near(t.out, t.expected, 0.0, c);
  });
}

TEST(Attention, NonFiniteInputsReachTheResult) {
  for_every_target([&] {
    Executor executor(1);
    const Case c{2, 1, 24, 70, 20};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    const auto spoil = [&](RandomMatrix Tensors::*input, float bad) {
      Tensors t(c);
      (t.*input).view().row(5)[3] = bad;
      causal_attention({executor}, shape_of(c), t.q.view(), t.keys.view(), t.values.view(),
                       t.out.view());
      EXPECT_TRUE(has_non_finite(t.out.view().row(5)));
    };
    spoil(&Tensors::q, nan);
    spoil(&Tensors::q, infinity);
    // An infinite key may give a score of −∞, which is a weight of zero.
    spoil(&Tensors::keys, nan);
    spoil(&Tensors::values, nan);
    spoil(&Tensors::values, infinity);
  });
}

TEST(Attention, LongSequenceMatchesDouble) {
  Executor executor(2);
  const Case c{4, 1, 32, 16384, 3};
  Tensors t(c);
  causal_attention({executor}, shape_of(c), t.q.view(), t.keys.view(), t.values.view(),
                   t.out.view());
  attention_reference(shape_of(c), t.q.view(), t.keys.view(), t.values.view(), 16384,
                      t.expected.view());
  expect_near(t.out, t.expected, 1e-6, c);
}

TEST(Attention, StopsWhenCancelled) {
  Executor executor(1);
  CancelToken cancel;
  cancel.cancel();
  const Case c{2, 1, 8, 0, 4};
  Tensors t(c);
  EXPECT_THROW(causal_attention({executor, &cancel}, shape_of(c), t.q.view(), t.keys.view(),
                                t.values.view(), t.out.view()),
               Error);
}

TEST(Rotary, RotatesTheFirstDimsOfEachHead) {
  for_every_target([&] {
    Executor executor(2);
    for (const std::size_t half : {1, 4, 9, 32, 36}) {
      const std::size_t head_dim = 2 * half + half % 3, heads = 3, tokens = 5;
      RandomMatrix x(tokens, heads * head_dim, 1, -1.0f, 1.0f, 4);
      const RandomMatrix before = x;
      const RandomMatrix cosines(tokens, half, 2), sines(tokens, half, 3, -1.0f, 1.0f, 1);
      apply_rotary({executor}, x.view(), heads, head_dim, cosines.view(), sines.view());
      for (std::size_t token = 0; token < tokens; ++token) {
        for (std::size_t column = 0; column < heads * head_dim; ++column) {
          const std::size_t i = column % head_dim;
          const auto old = before.view().row(token);
          double want = old[column];
          if (i < half) {
            want = want * cosines.view().row(token)[i] -
                   double{old[column + half]} * sines.view().row(token)[i];
          } else if (i < 2 * half) {
            want = want * cosines.view().row(token)[i - half] +
                   double{old[column - half]} * sines.view().row(token)[i - half];
          }
          ASSERT_NEAR(x.view().row(token)[column], want, 2e-7);
        }
      }
    }
  });
}

}  // namespace
}  // namespace clefkit
