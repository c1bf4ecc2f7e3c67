#include "clefkit/backend/ane/apple/apple_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"
#include "clefkit/base/stopwatch.h"
#include "clefkit/model/checkpoint.h"

extern "C" std::size_t StandInLiveSurfaces();

namespace clefkit::ane {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Adds its input to itself; rows of 40, which a device pads.
constexpr char kSum[] = R"(program(1.3)
[buildInfo = dict<string, string>({{"coremlc-version", "3505.4.1"}})]
{
    func main<ios18>(tensor<fp16, [1, 4, 1, 40]> x) {
        tensor<fp16, [1, 4, 1, 40]> y = add(x = x, y = x)[name = string("y")];
    } -> (y);
}
)";

// Each test is a process of its own (ctest), where the framework is opened anew, and has a cache of
// its own.
class AppleDeviceTest : public testing::Test {
 protected:
  AppleDeviceTest() {
    std::filesystem::create_directories(cache_);
    ::setenv("ANE_STANDIN_CACHE", cache_.c_str(), 1);
    set_faults("");
  }
  ~AppleDeviceTest() override { std::filesystem::remove_all(cache_); }

  static void set_faults(const char* faults) { ::setenv("ANE_STANDIN_FAULTS", faults, 1); }
  std::string failure(const ProgramSource& source) {
    try {
      const auto program = open_apple_device(options_)->open(source);
      if (!program->is_compiled()) program->compile();
      program->load();
    } catch (const Error& error) {
      return fmt::format("{} {}", to_string(error.code()), error.what());
    }
    return "works";
  }

  const std::filesystem::path cache_ =
      std::filesystem::temp_directory_path() /
      fmt::format("clefkit_ane_{}_{}", ::getpid(),
                  testing::UnitTest::GetInstance()->current_test_info()->name());
  const AppleOptions options_{.framework = CLEFKIT_STANDIN_FRAMEWORK,
                              .compiler = CLEFKIT_STANDIN_COMPILER,
                              .pause_after_failure = std::chrono::milliseconds(0)};
};

TEST_F(AppleDeviceTest, TellsWhatTheFrameworkSays) {
  const AppleFacts facts = apple_facts(options_);
  EXPECT_EQ(facts.problem, "");
  EXPECT_THAT(facts.missing, IsEmpty());
  EXPECT_EQ(facts.chip, "h16g");
  EXPECT_EQ(facts.cores, 16U);
  EXPECT_NE(facts.system, "");
}

TEST_F(AppleDeviceTest, SaysWhyThereIsNone) {
  EXPECT_THAT(apple_facts({.framework = "/no/such/framework"}).problem,
              HasSubstr("cannot be opened"));
  set_faults("no_engine");
  EXPECT_THAT(apple_facts(options_).problem, HasSubstr("no Neural Engine"));
  EXPECT_THROW(open_apple_device(options_), Error);
}

TEST_F(AppleDeviceTest, NamesWhatTheFrameworkLacks) {
  set_faults("missing_class");
  const AppleFacts facts = apple_facts(options_);
  EXPECT_THAT(facts.missing, ElementsAre("+[_ANEIOSurfaceObject objectWithIOSurface:]"));
  EXPECT_THAT(facts.problem, HasSubstr("lacks +[_ANEIOSurfaceObject objectWithIOSurface:]"));
}

TEST_F(AppleDeviceTest, CompilesInAnotherProcessAndOnce) {
  const auto device = open_apple_device(options_);
  const ProgramSource source{"sum", kSum, {}};
  {
    const auto program = device->open(source);
    EXPECT_FALSE(program->is_compiled());
    EXPECT_THROW(program->load(), Error);
    program->compile();
    EXPECT_TRUE(program->is_compiled());
    program->load();
    ASSERT_EQ(program->inputs().size(), 1U);
    EXPECT_EQ(program->inputs()[0].name, "x");
    EXPECT_EQ(program->inputs()[0].shape, (mil::Shape{1, 4, 1, 40}));
    EXPECT_FALSE(std::filesystem::is_empty(cache_ / "work"));
  }
  // Its files are gone, the compiled program is not.
  EXPECT_TRUE(std::filesystem::is_empty(cache_ / "work"));
  const auto again = device->open(source);
  EXPECT_TRUE(again->is_compiled());
  again->load();
  again->purge();
  EXPECT_FALSE(again->is_compiled());
}

TEST_F(AppleDeviceTest, RefusesWhatTheCompilerRefuses) {
  std::string text = kSum;
  text.replace(text.find("add("), 4, "bad(");
  EXPECT_THAT(failure({"sum", text, {}}), HasSubstr("unsupported sum: "));
  EXPECT_THAT(failure({"sum", text, {}}), HasSubstr("InvalidMILProgram"));
  EXPECT_EQ(failure({"sum", kSum, {}}), "works");
}

TEST_F(AppleDeviceTest, WaitsForTheCompilerServiceAfterAFailure) {
  std::string text = kSum;
  text.replace(text.find("add("), 4, "bad(");
  EXPECT_THAT(failure({"sum", text, {}}), HasSubstr("InvalidMILProgram"));
  AppleOptions options = options_;
  options.pause_after_failure = std::chrono::milliseconds(700);
  const Stopwatch stopwatch;
  open_apple_device(options)->open({"sum", kSum, {}})->compile();
  EXPECT_GT(stopwatch.seconds(), 0.5);
  EXPECT_EQ(failure({"sum", kSum, {}}), "works");
}

TEST_F(AppleDeviceTest, SaysThatTheCompilerCrashed) {
  set_faults("compiler_crashes");
  EXPECT_THAT(failure({"sum", kSum, {}}),
              HasSubstr("unavailable sum: the compiler's process ended"));
}

TEST_F(AppleDeviceTest, KillsACompilerThatHangs) {
  set_faults("compiler_hangs");
  AppleOptions options = options_;
  options.compile_deadline = std::chrono::milliseconds(300);
  const auto program = open_apple_device(options)->open({"sum", kSum, {}});
  const Error error = error_of([&] { program->compile(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("sum: the compiler has not ended within 300 ms"));
}

TEST_F(AppleDeviceTest, SaysThatThereIsNoCompiler) {
  AppleOptions options = options_;
  options.compiler = "/no/such/program";
  const auto program = open_apple_device(options)->open({"sum", kSum, {}});
  EXPECT_THROW(program->compile(), Error);
}

TEST_F(AppleDeviceTest, TakesNoPortsThatItDoesNotUnderstand) {
  for (const auto& [fault, words] :
       {std::pair("no_outputs", "LiveOutputList"), std::pair("float32", "expected Float16")}) {
    set_faults(fault);
    EXPECT_THAT(failure({"sum", kSum, {}}), HasSubstr(words));
  }
}

TEST_F(AppleDeviceTest, TurnsTheFrameworksExceptionsIntoErrors) {
  set_faults("raises");
  EXPECT_THAT(failure({"sum", kSum, {}}), HasSubstr("no connection"));
}

TEST_F(AppleDeviceTest, KnowsThatTheDeviceIsFull) {
  set_faults("full");
  const auto program = open_apple_device(options_)->open({"sum", kSum, {}});
  program->compile();
  EXPECT_THROW(program->load(), TooManyPrograms);
}

std::vector<float> last_layer(Backend& backend, const Model& model, std::size_t tokens) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> rows(tokens * model.config.text.hidden_size);
  for (float& value : rows) value = normal(random);
  std::vector<std::int32_t> positions(tokens);
  std::iota(positions.begin(), positions.end(), 0);
  Executor executor(1);
  const auto sequence = backend.new_sequence(tokens);
  backend.prefill({executor}, *sequence,
                  {.hidden = {rows.data(), tokens, model.config.text.hidden_size},
                   .temporal = positions,
                   .height = positions,
                   .width = positions},
                  {});
  return rows;
}

// A whole model through the framework's classes: the same bits as without them.
TEST_F(AppleDeviceTest, ComputesWhatTheSimulatorComputes) {
  set_faults("pads_rows,reverses_ports,adds_output_suffix");
  const Model model = open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro");
  const auto with = [&](std::unique_ptr<Device> device) {
    return ProgramBackend(model, std::move(device), ProgramForm{PlanKind::kGrouped},
                          std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
  };
  ProgramBackend simulated = with(std::make_unique<SimulatorDevice>(mil::NumericProfile::kIdeal));
  ProgramBackend through = with(open_apple_device(options_));
  EXPECT_EQ(last_layer(through, model, 130), last_layer(simulated, model, 130));
}

std::size_t live_models() {
  void* const framework = ::dlopen(CLEFKIT_STANDIN_FRAMEWORK, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<std::size_t (*)()>(::dlsym(framework, "StandInLiveModels"))();
}

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(AppleDeviceTest, LeavesNothingBehindWhateverFails) {
  const Model model = open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro");
  const auto answers = [&] {
    try {
      ProgramBackend backend(model, open_apple_device(options_), ProgramForm{PlanKind::kGrouped},
                             std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
      last_layer(backend, model, 5);
      EXPECT_GT(StandInLiveSurfaces(), 0U);
      EXPECT_GT(live_models(), 0U);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(answers());  // Opens what stays open: the framework, the null device.
  const std::size_t files = open_files();
  EXPECT_TRUE(answers());
  for (const char* fault :
       {"compiler_crashes", "no_outputs", "float32", "short_strides", "raises"}) {
    set_faults(fault);
    std::filesystem::remove_all(cache_);
    EXPECT_FALSE(answers()) << fault;
    EXPECT_EQ(StandInLiveSurfaces(), 0U) << fault;
    EXPECT_EQ(live_models(), 0U) << fault;
    EXPECT_EQ(open_files(), files) << fault;
    EXPECT_TRUE(!std::filesystem::exists(cache_ / "work") ||
                std::filesystem::is_empty(cache_ / "work"))
        << fault;
    std::filesystem::create_directories(cache_);
  }
}

// Whatever program the next process opens.
TEST_F(AppleDeviceTest, CleansUpAfterAKilledProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto program = open_apple_device(options_)->open({"sum", kSum, {}});
    program->compile();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_FALSE(std::filesystem::is_empty(cache_ / "work"));
  std::string other = kSum;
  other.replace(other.find("add("), 4, "mul(");
  const auto device = open_apple_device(options_);
  const auto program = device->open({"product", other, {}});
  EXPECT_TRUE(std::filesystem::is_empty(cache_ / "work"));
  // What it had compiled stays.
  EXPECT_TRUE(device->open({"sum", kSum, {}})->is_compiled());
}

}  // namespace
}  // namespace clefkit::ane
