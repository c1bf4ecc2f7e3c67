#include "clefkit/eval/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "clefkit/backend/ane/text_programs.h"
#include "clefkit/base/error.h"
#include "clefkit/bundle/open_bundle.h"
#include "clefkit/convert/convert.h"
#include "clefkit/engine/engine.h"
#include "clefkit/mil/printer.h"
#include "clefkit/programs/text_program.h"

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

// A bundle's programs are written anew for a device that needs them spelled another way, over the
// same weight files. Its own text is what the first ways give.
TEST(SelfTest, SpellsABundlesProgramsAsADeviceNeedsThem) {
  std::string pattern = (std::filesystem::temp_directory_path() / "clefkit-spell-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  Executor executor(2);
  ConvertOptions conversion;
  conversion.min_weights = 1024;
  convert(kMicro, folder / "bundle", conversion, {executor});
  const Model model = open_bundle(folder / "bundle");
  ASSERT_FALSE(model.programs.empty());

  Spellings every;
  for (const SecondSpelling& second : kSecondSpellings) every.*second.flag = true;
  ane::TextPrograms first(model, {}), second(model, {.spellings = every});
  const TextProgramOptions options{.weight_path = mil::kWeightPath,
                                   .mlp_factors = model.mlp_factors};
  for (std::size_t i = 0; i < first.plan().size(); ++i) {
    const PlannedProgram& planned = first.plan()[i];
    const std::size_t context = planned.kind == ProgramKind::kAttention ? 1024 : 0;
    const auto find = [&](const std::string& tensor) -> const BlobWeight& {
      return *std::ranges::find(model.blob_weights, tensor, &BlobWeight::name);
    };
    const ane::ProgramSource own = first.source(i, context);
    EXPECT_EQ(own.mil,
              mil::to_text(emit_text_program(model.config.text, planned, context, find, options)));
    const ane::ProgramSource anew = second.source(i, context);
    EXPECT_EQ(anew.weights_file, own.weights_file);
    EXPECT_NE(anew.mil, own.mil) << planned.name;
    for (const char* op : {"concat", "tile", "softmax", "pow", "tanh"}) {
      EXPECT_EQ(anew.mil.find(std::string("= ") + op + "("), std::string::npos) << op;
    }
  }

  const Request request = parse_request(
      R"({"state": "The lamp is broken.", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}})",
      "request");
  const auto probability = [&](const EngineOptions& its_options) {
    Engine engine(open_bundle(folder / "bundle"), its_options);
    return engine.ask(request).probabilities.at(0).at(0);
  };
  const double expected = probability({.precision = Precision::kExact, .backend = "cpu"});
  EXPECT_NEAR(probability({.backend = "simulator", .spellings = every}), expected, 0.01);
  std::filesystem::remove_all(folder);
}

TEST(SelfTest, SaysWhatItCannotTest) {
  EXPECT_THROW(run_self_test({.backend = "cpu"}), Error);
  EXPECT_THROW(run_self_test({.backend = "simulator:m9"}), Error);
  EXPECT_THROW(run_self_test({.backend = "simulator", .model = "/no/such/model"}), Error);
}

}  // namespace
}  // namespace clefkit
