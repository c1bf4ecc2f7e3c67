#include "clefkit/eval/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

constexpr char kMicro[] = CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro";

TEST(SelfTest, PassesOnTheSimulator) {
  std::size_t steps = 0;
  const SelfTest test = run_self_test({.backend = "simulator:strict",
                                       .model = kMicro,
                                       .progress = [&](auto, auto, auto) { ++steps; }});
  EXPECT_EQ(test.problem, "");
  EXPECT_EQ(test.device, "simulator:strict");
  EXPECT_EQ(steps, test.probes.size() + 1);
  EXPECT_GT(test.parity.tokens, 128U);
  ASSERT_EQ(test.parity.layers.size(), 4U);  // The simulator's plan ends a program at each.
  for (const Parity::Layer& layer : test.parity.layers) {
    EXPECT_GT(layer.error, 0.0) << layer.name;
    EXPECT_LT(layer.error, 0.03) << layer.name;
  }
  EXPECT_LT(test.parity.probability_difference, 0.005);
  EXPECT_TRUE(test.parity.same_answers);
  EXPECT_GT(test.parity.seconds_per_call, 0.0);

  const Json json = self_test_to_json(test);
  EXPECT_TRUE(json.find("passed")->boolean());
  EXPECT_EQ(json.find("probes")->items().size(), test.probes.size());
  EXPECT_EQ(json.find("parity")->find("layers")->items().size(), 4U);
}

TEST(SelfTest, NeedsNoModelForItsProbes) {
  const SelfTest test = run_self_test({.backend = "simulator"});
  EXPECT_TRUE(test.passed());
  EXPECT_TRUE(self_test_to_json(test).find("parity")->is_null());
}

TEST(SelfTest, SaysWhatItCannotTest) {
  EXPECT_THROW(run_self_test({.backend = "cpu"}), Error);
  EXPECT_THROW(run_self_test({.backend = "simulator:m9"}), Error);
  EXPECT_THROW(run_self_test({.backend = "simulator", .model = "/no/such/model"}), Error);
}

}  // namespace
}  // namespace clefkit
