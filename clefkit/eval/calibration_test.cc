#include "clefkit/eval/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/file_io.h"
#include "clefkit/engine/record.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/model/tensor_plan.h"

namespace clefkit {
namespace {

Model open_golden(const std::string& name) {
  return open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/" + name);
}

TextScales measure(const std::string& checkpoint, const std::vector<Request>& requests,
                   std::size_t threads, const std::string& backend = "cpu") {
  Engine engine(open_golden(checkpoint), {.threads = threads, .backend = backend});
  Executor executor(threads);
  return measure_scales(engine, requests, {}, {executor});
}

std::vector<Request> built_in() { return parse_request_lines(built_in_calibration(), "built in"); }

std::vector<float> bfloat16_values(const Model& model, const std::string& name) {
  const Bytes bytes = model.tensor(name).bytes;
  std::vector<float> values(bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bytes[2 * i + 1]) << 24 |
                                     static_cast<std::uint32_t>(bytes[2 * i]) << 16);
  }
  return values;
}

// The largest activation of each layer, and the largest sum of the absolute values of a row's
// products: by loops over a sequence that was run in one piece, without engine and cache.
struct Plain {
  std::vector<double> activations, sums;
};

Plain plain_maxima(const std::string& checkpoint, const std::vector<Request>& requests) {
  const Model model = open_golden(checkpoint);
  const TextConfig& config = model.config.text;
  Engine encoder(open_golden(checkpoint), {.threads = 1});
  cpu::CpuBackend backend(model, Precision::kExact);
  const std::vector<float> embeddings =
      bfloat16_values(model, "model.language_model.embed_tokens.weight");
  Executor executor(1);
  Plain plain{std::vector<double>(config.num_hidden_layers),
              std::vector<double>(config.num_hidden_layers)};
  for (const Request& request : requests) {
    const Record record = encoder.prepare(request).record;
    const std::size_t tokens = record.input_ids.size(), width = config.hidden_size;
    std::vector<float> hidden(tokens * width);
    for (std::size_t token = 0; token < tokens; ++token) {
      const auto id = static_cast<std::size_t>(record.input_ids[token]);
      std::copy_n(embeddings.data() + id * width, width, hidden.data() + token * width);
    }
    const auto look = [&](std::size_t layer, MatrixView<const float> rows) {
      const std::vector<float> down =
          bfloat16_values(model, text_layer_prefix(layer) + "mlp.down_proj.weight");
      for (std::size_t token = 0; token < rows.rows; ++token) {
        for (const float value : rows.row(token)) {
          plain.activations[layer] = std::max(plain.activations[layer], std::abs(double{value}));
        }
        for (std::size_t out = 0; out < width; ++out) {
          double sum = 0;
          for (std::size_t i = 0; i < rows.columns; ++i) {
            sum += std::abs(double{down[out * rows.columns + i]} * rows.row(token)[i]);
          }
          plain.sums[layer] = std::max(plain.sums[layer], sum);
        }
      }
    };
    const auto sequence = backend.new_sequence(tokens);
    backend.prefill({executor}, *sequence,
                    {.hidden = {hidden.data(), tokens, width},
                     .temporal = record.temporal,
                     .height = record.height,
                     .width = record.width},
                    {.mlp_activations = look});
  }
  return plain;
}

class Calibration : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, Calibration, testing::Values("micro", "tied"),
                         [](const auto& test) { return test.param; });

TEST_P(Calibration, BoundsWhatPlainLoopsFind) {
  const TextScales scales = measure(GetParam(), built_in(), 2);
  const Plain plain = plain_maxima(GetParam(), built_in());
  ASSERT_EQ(scales.mlp.size(), plain.activations.size());
  for (std::size_t layer = 0; layer < scales.mlp.size(); ++layer) {
    const MlpScale& scale = scales.mlp[layer];
    EXPECT_EQ(scale.layer, layer);
    // The next power of two, a rounding apart.
    EXPECT_GE(scale.largest_activation, plain.activations[layer] * (1 - 1e-5));
    EXPECT_LT(scale.largest_activation, plain.activations[layer] * 2 * (1 + 1e-5));
    // A bound of it: another factor of 4 is what norms and the rounding give away at most here.
    EXPECT_GE(scale.largest_sum, plain.sums[layer] * (1 - 1e-5));
    EXPECT_LT(scale.largest_sum, plain.sums[layer] * 8);
    // By the rule as the documents have it.
    double factor = 16;
    while (factor > 1 && factor * std::max(scale.largest_activation, scale.largest_sum) > 4096) {
      factor /= 2;
    }
    EXPECT_EQ(static_cast<double>(scale.factor), factor);
  }
}

TEST(CalibrationScales, AreTheSameForEveryNumberOfThreads) {
  const TextScales one = measure("micro", built_in(), 1), three = measure("micro", built_in(), 3);
  EXPECT_EQ(one.tokens, three.tokens);
  ASSERT_EQ(one.mlp.size(), three.mlp.size());
  for (std::size_t i = 0; i < one.mlp.size(); ++i) {
    EXPECT_EQ(one.mlp[i].factor, three.mlp[i].factor);
    EXPECT_EQ(one.mlp[i].largest_activation, three.mlp[i].largest_activation);
    EXPECT_EQ(one.mlp[i].largest_sum, three.mlp[i].largest_sum);
  }
}

// Requests with the same state: what the first left in the cache is computed again.
TEST(CalibrationScales, LookAtEveryToken) {
  const std::vector<Request> requests = built_in();
  const std::vector<Request> twice{requests[0], requests[0]};
  Engine engine(open_golden("micro"), {.threads = 1});
  std::size_t shown = 0;
  const TextObserver observer{
      .mlp_activations = [&](std::size_t layer, MatrixView<const float> rows) {
        if (layer == 0) shown += rows.rows;
      }};
  std::size_t tokens = 0;
  for (const Request& request : twice) {
    tokens += engine.ask(request, {.observer = &observer}).input_tokens;
  }
  EXPECT_EQ(shown, tokens);
}

TEST(CalibrationScales, KnowNothingOfProgramsInsides) {
  EXPECT_TRUE(measure("micro", {built_in()[2]}, 1, "simulator").mlp.empty());
}

TEST(BuiltInCalibration, AsksEveryKindOfQuestionInFewTokens) {
  const Tokenizer tokenizer(read_file(CLEFKIT_RELEASE_TOKENIZER, std::uint64_t{1} << 26),
                            "tokenizer.json");
  std::set<QuestionType> types;
  std::size_t tokens = 0;
  for (const Request& request : built_in()) {
    for (const Question& question : request.questions) types.insert(question.type);
    tokens += encode_record(tokenizer, request, {}, {}).input_ids.size();
  }
  EXPECT_EQ(types.size(), 3u);
  EXPECT_LE(tokens, 512u);
}

}  // namespace
}  // namespace clefkit
