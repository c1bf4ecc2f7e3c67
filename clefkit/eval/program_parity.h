#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/backend/ane/backend_runs.h"
#include "clefkit/backend/ane/golden_model.h"
#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/backend/cpu/cpu_sequence.h"

// For tests: each layer's programs alone, what they make of an input beside what the CPU makes of
// the same one, so that no layer's error adds to another's.
namespace clefkit {

// What the project asks of each output of a program.
inline constexpr double kProgramTolerance = 2e-3;

// By output, "2 recurrent_state" or "features"; relative to the CPU's.
using ProgramErrors = std::map<std::string, double>;

namespace program_parity {

using Values = std::vector<float>;
using Outputs = std::map<std::string, Values>;
constexpr std::size_t kConvStateTokens = 3;  // Of all golden checkpoints.

inline Values floats(const std::vector<Half>& values) {
  Values result(values.size());
  std::ranges::transform(values, result.begin(), [](Half value) { return to_float(value); });
  return result;
}

inline Values floats(MatrixView<const float> rows) {
  return {rows.data, rows.data + rows.rows * rows.columns};
}

// [rows, columns] as [columns, rows].
inline Values transposed(const Values& values, std::size_t columns) {
  Values result;
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t i = column; i < values.size(); i += columns) result.push_back(values[i]);
  }
  return result;
}

// The embeddings of random tokens, [tokens, hidden_size], each `repeats` times in a row.
inline Values random_embeddings(const Model& model, std::size_t tokens, std::size_t repeats) {
  const TensorView& table = model.tensor("model.language_model.embed_tokens.weight");
  const std::size_t hidden_size = model.config.text.hidden_size;
  std::mt19937 random(6);
  Values rows;
  std::size_t id = 0;
  for (std::size_t token = 0; token < tokens; ++token) {
    if (token % repeats == 0) id = random() % table.shape[0];
    for (const BFloat16 value : table.bfloat16_values().subspan(id * hidden_size, hidden_size)) {
      rows.push_back(to_float(value));
    }
  }
  return rows;
}

inline Outputs states_of(cpu::CpuSequence& sequence, LayerType type) {
  if (type == LayerType::kLinearAttention) {
    const cpu::LinearAttentionState& state = sequence.linear_attention(0);
    return {{"conv_state", state.conv_state}, {"recurrent_state", state.recurrent_state}};
  }
  cpu::KvCache& cache = sequence.kv_cache(0);
  return {{"k", floats(cache.keys(sequence.tokens()))},
          {"v", floats(cache.values(sequence.tokens()))}};
}

// As the CPU's lie.
inline Outputs states_of(ane::ProgramSequence& sequence, LayerType type, std::size_t layer) {
  if (type == LayerType::kLinearAttention) {
    const ane::ProgramSequence::LinearAttention& state = sequence.linear_attention(layer);
    return {{"conv_state", transposed(floats(state.conv_state), kConvStateTokens)},
            {"recurrent_state", floats(state.recurrent_state)}};
  }
  const ane::ProgramSequence::KvCache& cache = sequence.kv_cache(layer);
  return {{"k", floats(cache.keys)}, {"v", floats(cache.values)}};
}

inline std::unique_ptr<Backend> cpu_backend(const Model& model) {
  return std::make_unique<cpu::CpuBackend>(model, Precision::kExact);
}

inline ane::ProgramBackend program_backend(const Model& model,
                                           std::unique_ptr<ane::Device> device) {
  return ane::ProgramBackend(model, std::move(device), ane::ProgramForm{.plan = PlanKind::kSplit},
                             cpu_backend(model));
}

}  // namespace program_parity

// Of every text layer of a model that is cut into a program for each: its rows and its states after
// a whole call and a part of one, of random tokens. Throws Error as the programs do.
inline ProgramErrors text_program_errors(const Model& model, std::unique_ptr<ane::Device> device,
                                         std::size_t repeats = 1) {
  using namespace program_parity;
  const std::vector<std::size_t> pieces{128, 20};  // The second with the state of the first.
  constexpr std::size_t kTokens = 148;
  const auto rows = [&](const Values& values) {
    return MatrixView<const float>(values.data(), kTokens, model.config.text.hidden_size);
  };
  const Values embeddings = random_embeddings(model, kTokens, repeats);
  ane::ProgramBackend programs = program_backend(model, std::move(device));
  const auto sequence = programs.new_sequence(kTokens);
  const ane::Layers outputs = ane::append_rows(programs, *sequence, rows(embeddings), pieces);
  EXPECT_EQ(outputs.size(), model.config.text.num_hidden_layers);
  ProgramErrors errors;
  for (const auto& [layer, output] : outputs) {
    const LayerType type = model.config.text.layer_types[layer];
    Outputs actual = states_of(dynamic_cast<ane::ProgramSequence&>(*sequence), type, layer);
    actual["x"] = output;

    const Model one = ane::one_layer(model, layer);
    const auto cpu = cpu_backend(one);
    const auto cpu_sequence = cpu->new_sequence(kTokens);
    const Values& input = layer == 0 ? embeddings : outputs.at(layer - 1);
    const ane::Layers expected_x = ane::append_rows(*cpu, *cpu_sequence, rows(input), pieces);
    Outputs expected = states_of(dynamic_cast<cpu::CpuSequence&>(*cpu_sequence), type);
    expected["x"] = expected_x.at(0);
    for (const auto& [name, values] : expected) {
      errors[std::to_string(layer) + " " + name] = ane::relative_error(actual.at(name), values);
    }
  }
  return errors;
}

// Of the features of two pictures that share a call; patch embedding and merger around the blocks
// are the CPU's own code.
inline ProgramErrors vision_program_errors(const Model& model,
                                           std::unique_ptr<ane::Device> device) {
  using namespace program_parity;
  const VisionConfig& config = model.config.vision;
  const std::vector<VisionSegment> pictures{{4, 6}, {16, 16}};
  ane::ProgramBackend programs = program_backend(model, std::move(device));
  const auto cpu = cpu_backend(model);
  return {{"features", ane::relative_error(ane::features_of(programs, config, pictures),
                                           ane::features_of(*cpu, config, pictures))}};
}

}  // namespace clefkit
