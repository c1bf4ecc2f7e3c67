#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/engine/engine.h"
#include "clefkit/engine/golden_case.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit {
namespace {

std::vector<std::string> golden_checkpoints() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(golden_directory() / "checkpoints")) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  Engine engine_{open_checkpoint(golden_directory() / "checkpoints" / GetParam()),
                 {.threads = 2, .precision = Precision::kExact}};
};

INSTANTIATE_TEST_SUITE_P(Checkpoints, Golden, ::testing::ValuesIn(golden_checkpoints()),
                         [](const auto& test) { return test.param; });

// The text layers as programs of the Neural Engine, in FP16: a fifth of the records with text.
TEST(GoldenPrograms, AnswerAsTheReference) {
  Engine engine(open_checkpoint(golden_directory() / "checkpoints" / "micro"),
                {.threads = 1, .precision = Precision::kExact, .backend = "simulator:strict"});
  const std::vector<GoldenCase> cases = load_golden_cases("micro", false);
  ASSERT_GE(cases.size(), 20u);
  for (std::size_t i = 0; i < cases.size(); i += 5) {
    // A record of 16,384 tokens would take minutes.
    if (to_string(cases[i].request.state).size() > 4000) continue;
    const Response response = engine.ask(cases[i].request, cases[i].options);
    EXPECT_LE(largest_probability_difference(cases[i], response), 0.005) << cases[i].name;
  }
}

// Pictures and clips as programs of the Neural Engine, then the text layers.
struct SimulatedCase {
  std::string checkpoint, profile, name;
  double tolerance = 0;  // Of a probability.
};
void PrintTo(const SimulatedCase& simulated, std::ostream* out) {
  *out << simulated.checkpoint << ' ' << simulated.profile << ' ' << simulated.name;
}

class GoldenMediaPrograms : public ::testing::TestWithParam<SimulatedCase> {};

// A picture and two clips in one call, three pictures, one that nearly fills its call; h15g takes
// five times as long to simulate. Of all 21 media cases the worst are at half to three quarters of
// these tolerances.
INSTANTIATE_TEST_SUITE_P(Cases, GoldenMediaPrograms,
                         ::testing::Values(SimulatedCase{"micro", "strict", "mixed", 0.003},
                                           SimulatedCase{"micro", "strict", "images_three", 0.003},
                                           SimulatedCase{"micro", "strict", "image_ane_big", 0.003},
                                           SimulatedCase{"micro", "m1", "mixed", 0.003},
                                           SimulatedCase{"micro", "m5", "mixed", 0.003},
                                           SimulatedCase{"micro", "h15g", "video_clip", 0.015},
                                           SimulatedCase{"tied", "ideal", "image_jpeg", 0.005}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", test.param.checkpoint, test.param.profile,
                                              test.param.name);
                         });

TEST_P(GoldenMediaPrograms, AnswerAsTheReference) {
  const SimulatedCase& simulated = GetParam();
  Engine engine(
      open_checkpoint(golden_directory() / "checkpoints" / simulated.checkpoint),
      {.threads = 1, .precision = Precision::kExact, .backend = "simulator:" + simulated.profile});
  const GoldenCase golden = load_golden_case(simulated.checkpoint, simulated.name);
  EXPECT_LE(largest_probability_difference(golden, engine.ask(golden.request, golden.options)),
            simulated.tolerance);
}

TEST_P(Golden, AnswersAsTheReference) {
  double worst = 0;
  std::vector<GoldenCase> cases = load_golden_cases(GetParam(), false);
  ASSERT_FALSE(cases.empty());
  const std::vector<GoldenCase> media = load_golden_cases(GetParam(), true);
  ASSERT_FALSE(media.empty());
  cases.insert(cases.end(), media.begin(), media.end());
  for (const GoldenCase& golden : cases) {
    const double difference =
        largest_probability_difference(golden, engine_.ask(golden.request, golden.options));
    EXPECT_LE(difference, 1e-4) << golden.name;
    worst = std::max(worst, difference);
  }
  RecordProperty("worst_probability_difference", fmt::format("{:.2e}", worst));
  std::printf("%s: %zu cases, worst probability difference %.2e\n", GetParam().c_str(),
              cases.size(), worst);
}

// The largest difference as a part of the expected tensor's root mean square.
double largest_difference(const TraceTensor& found, const TensorView& expected) {
  const auto& values = std::get<std::vector<float>>(found.values);
  const auto reference = expected.float_values();
  double square_sum = 0, largest = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    square_sum += double{reference[i]} * reference[i];
    const double difference = std::abs(double{values[i]} - reference[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest / std::sqrt(square_sum / static_cast<double>(reference.size()));
}

// What the vision blocks make of pictures and clips on the way there.
TEST(GoldenPrograms, PassThroughTheReferencesVisionResults) {
  Engine engine(open_checkpoint(golden_directory() / "checkpoints" / "micro"),
                {.threads = 1, .precision = Precision::kExact, .backend = "simulator:strict"});
  const GoldenCase golden = load_golden_case("micro", "mixed");
  const Trace trace = engine.trace(golden.request, golden.options);
  const SafetensorsFile expected(golden.trace_path());
  std::size_t compared = 0;
  for (const TensorView& tensor : expected.tensors()) {
    if (!tensor.name.starts_with("vision.") || tensor.dtype == DType::kI64) continue;
    SCOPED_TRACE(tensor.name);
    ASSERT_TRUE(trace.contains(tensor.name));
    ASSERT_EQ(trace.at(tensor.name).shape, tensor.shape);
    EXPECT_LE(largest_difference(trace.at(tensor.name), tensor), 0.01);
    ++compared;
  }
  // Pixels, embeddings, two blocks and features of a picture and two clips.
  EXPECT_EQ(compared, 15u);
}

TEST_P(Golden, PassesThroughTheReferencesIntermediateResults) {
  double worst = 0;
  std::size_t traces = 0;
  std::vector<GoldenCase> cases = load_golden_cases(GetParam(), false);
  for (GoldenCase& golden : load_golden_cases(GetParam(), true)) cases.push_back(std::move(golden));
  for (const GoldenCase& golden : cases) {
    if (!std::filesystem::exists(golden.trace_path())) continue;
    ++traces;
    const Trace trace = engine_.trace(golden.request, golden.options);
    const SafetensorsFile expected(golden.trace_path());
    for (const TensorView& tensor : expected.tensors()) {
      SCOPED_TRACE(golden.name + ": " + tensor.name);
      ASSERT_TRUE(trace.contains(tensor.name));
      const TraceTensor& found = trace.at(tensor.name);
      ASSERT_EQ(found.shape, tensor.shape);
      if (tensor.dtype == DType::kI64) {
        const auto& integers = std::get<std::vector<std::int64_t>>(found.values);
        EXPECT_EQ(std::memcmp(integers.data(), tensor.bytes.data(), tensor.bytes.size()), 0);
        continue;
      }
      const double difference = largest_difference(found, tensor);
      EXPECT_LE(difference, 1e-3);
      worst = std::max(worst, difference);
    }
  }
  EXPECT_GT(traces, 0u);
  RecordProperty("worst_hidden_difference", fmt::format("{:.2e}", worst));
  std::printf("%s: %zu traces, worst hidden difference %.2e of the root mean square\n",
              GetParam().c_str(), traces, worst);
}

}  // namespace
}  // namespace clefkit
