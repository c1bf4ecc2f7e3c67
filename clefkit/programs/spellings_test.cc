#include "clefkit/programs/spellings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "clefkit/mil/checker.h"
#include "clefkit/mil/simulator.h"
#include "clefkit/programs/program_builder.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;
using testing::ElementsAre;

TEST(Spellings, HaveNamesThatReadBack) {
  EXPECT_TRUE(names_of({}).empty());
  std::set<std::string> all;
  for (const SecondSpelling& second : kSecondSpellings) {
    Spellings spellings;
    spellings.*second.flag = true;
    const std::vector<std::string> names = names_of(spellings);
    EXPECT_THAT(names, ElementsAre(std::string(second.name)));
    EXPECT_EQ(spellings_of(names), spellings);
    all.insert(names[0]);
  }
  EXPECT_EQ(all.size(), kSecondSpellings.size());
  EXPECT_EQ(spellings_of(std::vector<std::string>{"reduce_mean", "sums by halves"}), std::nullopt);
}

// What `write` makes of x [1, channels, 1, 32], whose values are small whole numbers and a half,
// after the checker has found nothing.
std::vector<float> result_of(const Spellings& spellings, std::int64_t channels,
                             const std::function<Name(ProgramBuilder&, const Name&)>& write,
                             std::set<std::string>& operations) {
  ProgramBuilder builder(TestWeights::kPath, spellings);
  const Name x = builder.input("x", {1, channels, 1, 32});
  // Of what may be an input itself, as the maximum of one channel is.
  const Name result = write(builder, x);
  builder.output(builder.binary("add", result, builder.scalar(0, "nothing"), "sum"), "y");
  const mil::Program program = std::move(builder).finish();
  EXPECT_THAT(mil::check_program(program, {}), testing::IsEmpty());
  for (const mil::Statement& statement : program.functions[0].statements) {
    operations.insert(statement.op);
  }
  mil::Tensor input{{1, channels, 1, 32}, {}};
  for (std::int64_t i = 0; i < channels * 32; ++i) {
    input.values.push_back(static_cast<float>(i * 29 % 17) / 2 - 4);
  }
  const mil::Simulator simulator(program, {}, mil::NumericProfile::kStrict);
  return simulator.run({{"x", input}}).at("y").values;
}

struct Operation {
  bool Spellings::*flag;
  std::string first;  // What only the first way contains.
  double tolerance;
  std::function<Name(ProgramBuilder&, const Name&)> write;
};

std::vector<Operation> operations() {
  return {
      {&Spellings::silu, "tanh", 2e-3,
       [](ProgramBuilder& builder, const Name& x) { return builder.silu(x, "result"); }},
      {&Spellings::reduce_mean, "conv", 2e-3,
       [](ProgramBuilder& builder, const Name& x) { return builder.channel_mean(x, 4, "result"); }},
      {&Spellings::maximum_by_halves, "reduce_max", 0,
       [](ProgramBuilder& builder, const Name& x) { return builder.channel_maximum(x, "result"); }},
      {&Spellings::softmax_by_exp, "softmax", 1e-3,
       [](ProgramBuilder& builder, const Name& x) { return builder.softmax(x, "result"); }},
      {&Spellings::root_by_division, "pow", 2e-3,
       [](ProgramBuilder& builder, const Name& x) {
         const Name squares = builder.binary("mul", x, x, "squares");
         const Name sum = builder.binary("add", squares, builder.scalar(0.5, "half"), "sum");
         return builder.inverse_root(sum, "result");
       }},
      {&Spellings::concat_by_sum, "concat", 0,
       [](ProgramBuilder& builder, const Name& x) {
         const Name twice = builder.binary("mul", x, builder.scalar(2, "two"), "twice");
         return builder.concat({x, twice, x}, 1, "result");
       }},
      {&Spellings::concat_by_sum, "concat", 0,
       [](ProgramBuilder& builder, const Name& x) {
         const Name twice = builder.binary("mul", x, builder.scalar(2, "two"), "twice");
         return builder.concat({twice, x}, 3, "result");
       }},
      {&Spellings::tile_by_product, "tile", 0,
       [](ProgramBuilder& builder, const Name& x) {
         const std::int64_t channels = builder.type(x).shape.at(1);
         const Name apart = builder.reshape(x, {channels, 1, 1, 1, 32}, "apart");
         const Name tiled = builder.repeat(apart, 1, 3, "tiled");
         return builder.reshape(tiled, {1, 3 * channels, 1, 32}, "result");
       }},
  };
}

// Odd numbers of channels too, and one alone.
TEST(Spellings, ComputeTheSameEitherWay) {
  for (const Operation& operation : operations()) {
    for (const std::int64_t channels : {1, 2, 3, 7, 16, 61, 96}) {
      Spellings second;
      second.*operation.flag = true;
      std::set<std::string> first_operations, second_operations;
      const auto expected = result_of({}, channels, operation.write, first_operations);
      const auto actual = result_of(second, channels, operation.write, second_operations);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(actual[i], expected[i], operation.tolerance)
            << operation.first << " " << channels << " " << i;
      }
      EXPECT_TRUE(first_operations.contains(operation.first)) << operation.first;
      EXPECT_FALSE(second_operations.contains(operation.first)) << operation.first;
    }
  }
}

TEST(Spellings, OfAMaximumFindItAnywhere) {
  for (const std::int64_t channels : {3, 8, 13}) {
    for (std::int64_t place = 0; place < channels; ++place) {
      ProgramBuilder builder(TestWeights::kPath, {.maximum_by_halves = true});
      const Name x = builder.input("x", {1, channels, 1, 1});
      const Name largest = builder.channel_maximum(x, "largest");
      builder.output(largest, "y");
      const mil::Program program = std::move(builder).finish();
      mil::Tensor input{{1, channels, 1, 1},
                        std::vector<float>(static_cast<std::size_t>(channels), -2.0f)};
      input.values[static_cast<std::size_t>(place)] = -1;
      const mil::Simulator simulator(program, {}, mil::NumericProfile::kStrict);
      EXPECT_THAT(simulator.run({{"x", input}}).at("y").values, ElementsAre(-1.0f))
          << channels << " " << place;
    }
  }
}

}  // namespace
}  // namespace clefkit
