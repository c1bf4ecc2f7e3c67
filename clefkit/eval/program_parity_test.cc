#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "clefkit/backend/ane/backend_runs.h"
#include "clefkit/backend/ane/golden_model.h"
#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/backend/cpu/cpu_sequence.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/convert/convert.h"

// Each layer's programs alone: what they make of an input, beside what the CPU makes of the same
// one, so that no layer's error adds to another's.
namespace clefkit {
namespace {

using ane::append_rows;
using ane::Layers;
using ane::ProgramBackend;
using ane::ProgramSequence;
using ane::relative_error;
using Values = std::vector<float>;
using Outputs = std::map<std::string, Values>;

constexpr double kTolerance = 2e-3;          // What the project asks of each output of a program.
constexpr std::size_t kConvStateTokens = 3;  // Of all golden checkpoints.

Values floats(const std::vector<Half>& values) {
  Values result(values.size());
  std::ranges::transform(values, result.begin(), [](Half value) { return to_float(value); });
  return result;
}

Values floats(MatrixView<const float> rows) {
  return {rows.data, rows.data + rows.rows * rows.columns};
}

// [rows, columns] as [columns, rows].
Values transposed(const Values& values, std::size_t columns) {
  Values result;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t i = column; i < values.size(); i += columns) result.push_back(values[i]);
  }
  return result;
}

// The embeddings of random tokens, [tokens, hidden_size].
Values random_embeddings(const Model& model, std::size_t tokens) {
  const TensorView& table = model.tensor("model.language_model.embed_tokens.weight");
  const std::size_t hidden_size = model.config.text.hidden_size;
  std::mt19937 random(6);
  Values rows;
  for (std::size_t token = 0; token < tokens; ++token) {
    const std::size_t id = random() % table.shape[0];
    for (const BFloat16 value : table.bfloat16_values().subspan(id * hidden_size, hidden_size)) {
      rows.push_back(to_float(value));
    }
  }
  return rows;
}

Outputs states_of(cpu::CpuSequence& sequence, LayerType type) {
  if (type == LayerType::kLinearAttention) {
    const cpu::LinearAttentionState& state = sequence.linear_attention(0);
    return {{"conv_state", state.conv_state}, {"recurrent_state", state.recurrent_state}};
  }
  cpu::KvCache& cache = sequence.kv_cache(0);
  return {{"k", floats(cache.keys(sequence.tokens()))},
          {"v", floats(cache.values(sequence.tokens()))}};
}

// As the CPU's lie.
Outputs states_of(ProgramSequence& sequence, LayerType type, std::size_t layer) {
  if (type == LayerType::kLinearAttention) {
    const ProgramSequence::LinearAttention& state = sequence.linear_attention(layer);
    return {{"conv_state", transposed(floats(state.conv_state), kConvStateTokens)},
            {"recurrent_state", floats(state.recurrent_state)}};
  }
  const ProgramSequence::KvCache& cache = sequence.kv_cache(layer);
  return {{"k", floats(cache.keys)}, {"v", floats(cache.values)}};
}

std::unique_ptr<Backend> cpu_backend(const Model& model) {
  return std::make_unique<cpu::CpuBackend>(model, Precision::kExact);
}

ProgramBackend program_backend(const Model& model) {
  return ProgramBackend(model, std::make_unique<ane::SimulatorDevice>(mil::NumericProfile::kIdeal),
                        ane::ProgramForm{.plan = PlanKind::kSplit}, cpu_backend(model));
}

// A golden checkpoint, and the bundle made of it with a program for each layer.
class ProgramParityTest : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  ProgramParityTest() {
    const auto& [name, is_bundle] = GetParam();
    std::filesystem::path path =
        std::filesystem::path(CLEFKIT_SOURCE_DIR) / "tests/golden/checkpoints" / name;
    if (is_bundle) {
      std::string pattern =
          (std::filesystem::temp_directory_path() / "clefkit-parity-XXXXXX").string();
      folder_ = ::mkdtemp(pattern.data());
      ConvertOptions options;
      options.min_weights = 1024;
      options.plan = PlanKind::kSplit;
      Executor executor(1);
      convert(path, folder_ / "bundle", options, {executor});
      path = folder_ / "bundle";
    }
    model_ = open_model(path);
  }
  ~ProgramParityTest() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Model model_{};

 private:
  std::filesystem::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Golden, ProgramParityTest,
                         testing::Combine(testing::Values("micro", "tied"), testing::Bool()),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param) ? "Bundle" : "Checkpoint");
                         });

TEST_P(ProgramParityTest, EachTextLayerComputesWhatTheCpuDoes) {
  const std::vector<std::size_t> pieces{128, 20};  // The second with the state of the first.
  constexpr std::size_t kTokens = 148;
  const std::size_t hidden_size = model_.config.text.hidden_size;
  const auto rows = [&](const Values& values) {
    return MatrixView<const float>(values.data(), kTokens, hidden_size);
  };
  const Values embeddings = random_embeddings(model_, kTokens);
  ProgramBackend programs = program_backend(model_);
  const auto sequence = programs.new_sequence(kTokens);
  const Layers outputs = append_rows(programs, *sequence, rows(embeddings), pieces);
  ASSERT_EQ(outputs.size(), model_.config.text.num_hidden_layers);
  for (const auto& [layer, output] : outputs) {
    const LayerType type = model_.config.text.layer_types[layer];
    Outputs actual = states_of(dynamic_cast<ProgramSequence&>(*sequence), type, layer);
    actual["x"] = output;

    const Model one = ane::one_layer(model_, layer);
    const auto cpu = cpu_backend(one);
    const auto cpu_sequence = cpu->new_sequence(kTokens);
    const Values& input = layer == 0 ? embeddings : outputs.at(layer - 1);
    const Layers expected_x = append_rows(*cpu, *cpu_sequence, rows(input), pieces);
    Outputs expected = states_of(dynamic_cast<cpu::CpuSequence&>(*cpu_sequence), type);
    expected["x"] = expected_x.at(0);

    for (const auto& [name, values] : expected) {
      const double error = relative_error(actual.at(name), values);
      EXPECT_LT(error, kTolerance) << "layer " << layer << ", " << name;
    }
  }
}

// Patch embedding and merger around the blocks are the CPU's own code.
TEST_P(ProgramParityTest, TheVisionBlocksComputeWhatTheCpuDoes) {
  const VisionConfig& config = model_.config.vision;
  const std::vector<VisionSegment> pictures{{4, 6}, {16, 16}};
  ProgramBackend programs = program_backend(model_);
  const auto cpu = cpu_backend(model_);
  EXPECT_LT(relative_error(ane::features_of(programs, config, pictures),
                           ane::features_of(*cpu, config, pictures)),
            kTolerance);
}

}  // namespace
}  // namespace clefkit
