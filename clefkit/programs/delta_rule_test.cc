#include "clefkit/programs/delta_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "clefkit/mil/simulator.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

using mil::NumericProfile;
using mil::Tensor;

struct Case {
  DeltaRuleShape shape;
  std::int64_t tokens;
};

mil::Program program_of(const Case& the_case) {
  const DeltaRuleShape& shape = the_case.shape;
  ProgramBuilder builder("");
  const std::int64_t tokens = the_case.tokens;
  const std::int64_t key_dim = shape.key_heads * shape.key_head_dim;
  const std::int64_t value_dim = shape.value_heads * shape.value_head_dim;
  const DeltaRuleOutput output = emit_delta_rule(
      builder, shape,
      {.q = builder.input("q", {1, key_dim, 1, tokens}),
       .k = builder.input("k", {1, key_dim, 1, tokens}),
       .v = builder.input("v", {1, value_dim, 1, tokens}),
       .g = builder.input("g", {1, shape.value_heads, 1, tokens}),
       .beta = builder.input("beta", {1, shape.value_heads, 1, tokens}),
       .state = builder.input("state",
                              {1, shape.value_heads, shape.key_head_dim, shape.value_head_dim})},
      "rule");
  builder.output(output.o, "o");
  builder.output(output.state, "new_state");
  return std::move(builder).finish();
}

// Inputs of the sizes that a model has: q and k of length 1, g from nearly none to very strong.
mil::Tensors inputs_of(const Case& the_case, std::uint64_t seed, std::int64_t padding = 0) {
  const DeltaRuleShape& shape = the_case.shape;
  const auto tokens = static_cast<std::size_t>(the_case.tokens);
  TestNumbers numbers(seed);
  mil::Tensors tensors;
  const auto add = [&](const char* name, mil::Shape its_shape, float scale) {
    const auto size = static_cast<std::size_t>(mil::element_count(its_shape));
    tensors[name] = {its_shape, numbers.vector(size, scale)};
  };
  const std::int64_t key_dim = shape.key_heads * shape.key_head_dim;
  const float unit = 1.7f / std::sqrt(static_cast<float>(shape.key_head_dim));
  add("q", {1, key_dim, 1, the_case.tokens}, unit);
  add("k", {1, key_dim, 1, the_case.tokens}, unit);
  add("v", {1, shape.value_heads * shape.value_head_dim, 1, the_case.tokens}, 2);
  add("g", {1, shape.value_heads, 1, the_case.tokens}, 1);
  add("beta", {1, shape.value_heads, 1, the_case.tokens}, 1);
  add("state", {1, shape.value_heads, shape.key_head_dim, shape.value_head_dim}, 0.5f);
  for (std::size_t i = 0; i < tensors["g"].values.size(); ++i) {
    float& g = tensors["g"].values[i];
    float& beta = tensors["beta"].values[i];
    g = -std::abs(g) * (i % 11 == 3 ? 90.0f : i % 3 == 0 ? 0.5f : 0.01f);
    g = to_float(to_half(g));
    beta = std::abs(beta);
    if (static_cast<std::int64_t>(i % tokens) >= the_case.tokens - padding) g = beta = 0;
  }
  return tensors;
}

// The recurrence, token by token, in double (model.md 2.2, step 7).
struct Expected {
  std::vector<double> o, state;
};
Expected expected_of(const Case& the_case, const mil::Tensors& in, std::int64_t padding = 0) {
  const DeltaRuleShape& s = the_case.shape;
  const auto tokens = static_cast<std::size_t>(the_case.tokens);
  const auto real_tokens = static_cast<std::size_t>(the_case.tokens - padding);
  const auto key = static_cast<std::size_t>(s.key_head_dim);
  const auto value = static_cast<std::size_t>(s.value_head_dim);
  Expected out{std::vector<double>(in.at("v").values.size()),
               {in.at("state").values.begin(), in.at("state").values.end()}};
  for (std::size_t head = 0; head < static_cast<std::size_t>(s.value_heads); ++head) {
    const auto key_head =
        head * static_cast<std::size_t>(s.key_heads) / static_cast<std::size_t>(s.value_heads);
    double* const state = out.state.data() + head * key * value;
    for (std::size_t t = 0; t < real_tokens; ++t) {
      const auto q = [&](std::size_t i) {
        return in.at("q").values[(key_head * key + i) * tokens + t];
      };
      const auto k = [&](std::size_t i) {
        return in.at("k").values[(key_head * key + i) * tokens + t];
      };
      const double decay = std::exp(in.at("g").values[head * tokens + t]);
      const double beta = in.at("beta").values[head * tokens + t];
      for (std::size_t i = 0; i < key * value; ++i) state[i] *= decay;
      for (std::size_t j = 0; j < value; ++j) {
        double known = 0, read = 0;
        for (std::size_t i = 0; i < key; ++i) known += state[i * value + j] * k(i);
        const double d = beta * (in.at("v").values[(head * value + j) * tokens + t] - known);
        for (std::size_t i = 0; i < key; ++i) {
          state[i * value + j] += k(i) * d;
          read += state[i * value + j] * q(i);
        }
        out.o[(head * value + j) * tokens + t] = read;
      }
    }
  }
  return out;
}

double largest_difference(const std::vector<float>& actual, const std::vector<double>& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(actual[i] - expected[i]));
  }
  return largest;
}

const Case kCases[] = {
    {{.key_heads = 2, .value_heads = 4, .key_head_dim = 16, .value_head_dim = 8}, 128},
    {{.key_heads = 3, .value_heads = 3, .key_head_dim = 8, .value_head_dim = 12}, 24},
    {{.key_heads = 1, .value_heads = 3, .key_head_dim = 32, .value_head_dim = 32}, 8}};

TEST(DeltaRuleProgram, HoldsForTheChecker) {
  for (const Case& the_case : kCases) {
    EXPECT_THAT(mil::check_program(program_of(the_case), {}), testing::IsEmpty());
  }
}

TEST(DeltaRuleProgram, IsTheRecurrenceOnEveryMachine) {
  for (const Case& the_case : kCases) {
    const mil::Program program = program_of(the_case);
    const mil::Tensors inputs = inputs_of(the_case, 5);
    const Expected expected = expected_of(the_case, inputs);
    // Values are of a size of 2; an M1 rounds sums of four to 12 bits.
    for (const auto& [profile, tolerance] :
         {std::pair(NumericProfile::kIdeal, 0.01), std::pair(NumericProfile::kStrict, 0.01),
          std::pair(NumericProfile::kM5, 0.01), std::pair(NumericProfile::kH15g, 0.02),
          std::pair(NumericProfile::kM1, 0.02)}) {
      const mil::Tensors out = mil::Simulator(program, {}, profile).run(inputs);
      EXPECT_LT(largest_difference(out.at("o").values, expected.o), tolerance)
          << to_string(profile) << " " << the_case.tokens;
      EXPECT_LT(largest_difference(out.at("new_state").values, expected.state), tolerance)
          << to_string(profile) << " " << the_case.tokens;
    }
  }
}

// Tokens that are padding leave the state as it is after the last real one.
TEST(DeltaRuleProgram, PassesOverPadding) {
  for (const std::int64_t padding : {1, 7, 8, 100, 127}) {
    const mil::Tensors inputs = inputs_of(kCases[0], 9, padding);
    const Expected expected = expected_of(kCases[0], inputs, padding);
    const mil::Program program = program_of(kCases[0]);
    const mil::Tensors out = mil::Simulator(program, {}, NumericProfile::kStrict).run(inputs);
    EXPECT_LT(largest_difference(out.at("new_state").values, expected.state), 0.01) << padding;
  }
}

}  // namespace
}  // namespace clefkit
