#include "clefkit/backend/ane/program_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/backend/ane/fake_device.h"
#include "clefkit/base/error_of.h"
#include "clefkit/mil/example_program.h"

namespace clefkit::ane {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class ProgramSetTest : public testing::Test {
 protected:
  ProgramSetTest() : weights_(mil::example_weights()) {}

  void start(Faults faults, ProgramSetOptions options = {}) {
    options.retry_after = 1ms;
    device_.emplace(std::move(faults));
    set_.emplace(*device_, options);
  }
  LoadedProgram& get(std::size_t number) {
    return set_->get({number, 0}, [&] {
      ++sources_;
      return ProgramSource{fmt::format("p{}", number), mil::kExampleText, weights_};
    });
  }
  // y of one input column whose four channels are 1, in the first output channels.
  std::vector<Half> run(LoadedProgram& program) {
    const std::vector<Half> ones(4, to_half(1.0f));
    program.input("x").write_columns(0, MatrixView<const Half>(ones.data(), 1, 4));
    set_->evaluate(program);
    std::vector<Half> y(32);
    program.output("y").read_columns(0, MatrixView<Half>(y.data(), 1, 32));
    return y;
  }
  FakeState& state() { return *device_->state(); }

  const std::vector<std::uint8_t> weights_;
  std::size_t sources_ = 0;
  std::optional<FakeDevice> device_;
  std::optional<ProgramSet> set_;
};

// Row o has the indices 4o … 4o + 3 of k/64, from row 16 on of -k/64, modulo 64.
void expect_example_sums(const std::vector<Half>& y) {
  for (std::size_t o = 0; o < 32; ++o) {
    const double first = static_cast<double>(4 * o % 64);
    const double sum = (4 * first + 6) / 64;
    EXPECT_EQ(to_float(y[o]), o < 16 ? sum : -sum) << o;
  }
}

TEST_F(ProgramSetTest, LoadsAProgramOnceAndRunsIt) {
  start({});
  expect_example_sums(run(get(1)));
  expect_example_sums(run(get(1)));
  EXPECT_EQ(sources_, 1u);
  EXPECT_EQ(state().compiles, 1u);
  EXPECT_EQ(state().calls, 2u);
}

TEST_F(ProgramSetTest, FindsPortsByNameWhateverTheirOrderAndPadding) {
  start({.pads_rows = true,
         .reverses_ports = true,
         .adds_output_suffix = true,
         .checks_surfaces = true});
  LoadedProgram& program = get(1);
  expect_example_sums(run(program));
  const Error error = error_of([&] { program.input("z"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("p1: the device knows no port z"));
}

TEST_F(ProgramSetTest, LetsTheLeastRecentlyUsedGoWhenTheDeviceIsFull) {
  start({.max_programs = 2});
  get(1);
  get(2);
  get(1);
  expect_example_sums(run(get(3)));  // Takes the place of 2.
  EXPECT_EQ(state().most_loaded, 2u);
  EXPECT_EQ(sources_, 3u);
  get(1);
  EXPECT_EQ(sources_, 3u);
  expect_example_sums(run(get(2)));
  EXPECT_EQ(sources_, 4u);
}

TEST_F(ProgramSetTest, KeepsToItsOwnBudget) {
  start({}, {.max_loaded = 3});
  for (std::size_t i = 0; i < 5; ++i) get(i);
  EXPECT_EQ(state().most_loaded, 3u);
}

TEST_F(ProgramSetTest, SaysSoWhenNotOneProgramFits) {
  start({.max_programs = 0});
  const Error error = error_of([&] { get(1); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("p1: program load failure 0x50004"));
}

TEST_F(ProgramSetTest, LoadsASecondTime) {
  start({.failing_loads = 1});
  expect_example_sums(run(get(1)));
  EXPECT_EQ(state().loads, 2u);
  EXPECT_EQ(state().compiles, 1u);
  start({.failing_loads = 2});
  EXPECT_THAT(error_of([&] { get(1); }).what(), HasSubstr("p1: program load failure 0x20004"));
  EXPECT_EQ(set_->loaded(), 0u);
}

TEST_F(ProgramSetTest, CompilesAnewWhatTheCacheHasOfAnotherSystem) {
  start({.has_stale_cache = true});
  expect_example_sums(run(get(1)));
  EXPECT_EQ(state().purged, std::set<std::string>{"p1"});
  EXPECT_EQ(state().compiles, 1u);
}

TEST_F(ProgramSetTest, HandsOnWhatTheCompilerSays) {
  start({.failing_compile = "p2"});
  get(1);
  EXPECT_THAT(error_of([&] { get(2); }).what(), HasSubstr("p2: ANECCompile() FAILED"));
  expect_example_sums(run(get(1)));
  start({.rejected_operation = "conv"});
  const Error error = error_of([&] { get(1); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("does not take conv"));
}

TEST_F(ProgramSetTest, AnswersNothingWhenAResultOverflows) {
  start({.overflows = true});
  LoadedProgram& program = get(1);
  const Error error = error_of([&] { run(program); });
  EXPECT_EQ(error.code(), ErrorCode::kOverflow);
  EXPECT_THAT(error.what(), HasSubstr("p1: y has a value that is not finite"));
}

TEST_F(ProgramSetTest, GivesADeviceUpThatHangs) {
  start({.hangs_after_calls = 1}, {.call_deadline = 50ms});
  LoadedProgram& program = get(1);
  expect_example_sums(run(program));
  const Error error = error_of([&] { run(program); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("p1: no result after 50 ms"));
  EXPECT_THAT(error_of([&] { run(program); }).what(), HasSubstr("restart this process"));
  EXPECT_THAT(error_of([&] { get(2); }).what(), HasSubstr("restart this process"));
  // The call still has its memory when it comes back after all.
  const std::shared_ptr<FakeState> state = device_->state();
  set_.reset();
  state->release();
}

TEST_F(ProgramSetTest, GivesADeviceUpThatHangsWhileItLoads) {
  start({.hangs_at_load = true}, {.load_deadline = 50ms});
  EXPECT_THAT(error_of([&] { get(1); }).what(), HasSubstr("p1: no result after 50 ms"));
  EXPECT_EQ(state().loads, 1U);
  EXPECT_THAT(error_of([&] { get(1); }).what(), HasSubstr("restart this process"));
}

}  // namespace
}  // namespace clefkit::ane
