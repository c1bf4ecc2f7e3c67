#include "clefkit/backend/ane/simulator_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include "clefkit/base/error.h"
#include "clefkit/base/half.h"
#include "clefkit/mil/checker.h"
#include "clefkit/programs/delta_rule.h"
#include "clefkit/programs/full_attention_program.h"
#include "clefkit/programs/text_program.h"

namespace clefkit::ane {
namespace {

constexpr auto kTokens = static_cast<std::size_t>(kProgramTokens);

using mil::dim;

// Rows [tokens, columns] as channels [1, columns, 1, S], padded with zeros, in FP16.
mil::Tensor as_channels(MatrixView<const float> rows) {
  mil::Tensor tensor = mil::zeros({1, dim(rows.columns), 1, kProgramTokens});
  for (std::size_t token = 0; token < rows.rows; ++token) {
    for (std::size_t c = 0; c < rows.columns; ++c) {
      tensor.values[c * kTokens + token] = to_float(to_half(rows.row(token)[c]));
    }
  }
  return tensor;
}

void copy_rows(const mil::Tensor& channels, MatrixView<float> rows) {
  for (std::size_t token = 0; token < rows.rows; ++token) {
    for (std::size_t c = 0; c < rows.columns; ++c) {
      rows.row(token)[c] = channels.values[c * kTokens + token];
    }
  }
}

// The rows of a cache as channels [1, kv_dim, 1, places].
mil::Tensor as_cache(const std::vector<float>& rows, std::size_t kv_dim, std::size_t places) {
  mil::Tensor tensor = mil::zeros({1, dim(kv_dim), 1, dim(places)});
  for (std::size_t token = 0; token * kv_dim < rows.size(); ++token) {
    for (std::size_t c = 0; c < kv_dim; ++c) {
      tensor.values[c * places + token] = rows[token * kv_dim + c];
    }
  }
  return tensor;
}

void append_rows(const mil::Tensor& channels, std::size_t tokens, std::vector<float>& rows) {
  const auto kv_dim = static_cast<std::size_t>(channels.shape[1]);
  for (std::size_t token = 0; token < tokens; ++token) {
    for (std::size_t c = 0; c < kv_dim; ++c) rows.push_back(channels.values[c * kTokens + token]);
  }
}

// Which places a token sees: all of the past, itself, and what came before it in its chunk.
mil::Tensor attention_mask(std::size_t past, std::size_t context) {
  mil::Tensor mask = mil::zeros({1, 1, kProgramTokens, dim(context)});
  const std::size_t cache = context - kTokens;
  for (std::size_t token = 0; token < kTokens; ++token) {
    float* const row = mask.values.data() + token * context;
    std::fill(row + past, row + cache, kMaskedScore);
    std::fill(row + cache + token + 1, row + context, kMaskedScore);
  }
  return mask;
}

// The smallest context that holds what is there and one call's tokens.
std::size_t context_for(std::size_t past) {
  const auto* const found = std::ranges::lower_bound(kAttentionContexts, past + kTokens);
  if (found == std::end(kAttentionContexts)) {
    throw_error(ErrorCode::kUnsupported, "record", "{} tokens, expected at most {} on this backend",
                past + kTokens, *std::rbegin(kAttentionContexts));
  }
  return *found;
}

}  // namespace

SimulatorBackend::SimulatorBackend(const Model& model, mil::NumericProfile profile, PlanKind plan,
                                   std::unique_ptr<Backend> vision)
    : model_(model),
      profile_(profile),
      name_(fmt::format("simulator:{}", to_string(profile))),
      vision_(std::move(vision)),
      rotary_angles_(model.config.text.rope_theta, model.config.text.rotary_dim,
                     model.config.text.mrope_section),
      programs_(plan_programs(model.config, plan)) {
  for (const PlannedProgram& program : programs_) {
    weights_.push_back(std::make_unique<ProgramWeights>(
        model, program, fmt::format("@model_path/weights/{}.bin", program.name)));
  }
}

std::size_t SimulatorBackend::chunk_tokens() const { return kTokens; }

std::unique_ptr<SequenceState> SimulatorBackend::new_sequence(std::size_t capacity_tokens) const {
  return std::make_unique<ProgramSequence>(model_.config.text, capacity_tokens);
}

const mil::Simulator& SimulatorBackend::load(std::size_t program, std::size_t context) {
  Loaded& loaded = loaded_[{program, context}];
  if (loaded.simulator != nullptr) return *loaded.simulator;
  const ProgramWeights& weights = *weights_[program];
  TextProgramOptions options;
  options.weight_path = weights.path();
  loaded.program = emit_text_program(
      model_.config.text, programs_[program], context,
      [&](const std::string& name) -> const BlobWeight& { return weights.find(name); }, options);
  loaded.simulator = std::make_unique<mil::Simulator>(loaded.program, weights.files(), profile_);
  return *loaded.simulator;
}

SimulatorBackend::Piece SimulatorBackend::piece_of(const TextChunk& chunk, std::size_t first,
                                                   std::size_t past) const {
  Piece piece;
  piece.tokens = std::min(kTokens, chunk.hidden.rows - first);
  piece.valid = mil::zeros({1, 1, 1, kProgramTokens});
  std::fill_n(piece.valid.values.begin(), piece.tokens, 1.0f);
  const std::size_t taps = model_.config.text.linear_conv_kernel_dim - 1;
  piece.conv_select = mil::zeros({1, 1, dim(taps) + kProgramTokens, dim(taps)});
  for (std::size_t i = 0; i < taps; ++i) {
    piece.conv_select.values[(piece.tokens + i) * taps + i] = 1.0f;
  }
  piece.context = context_for(past);
  piece.mask = attention_mask(past, piece.context);
  std::vector<float> cosines(piece.tokens * rotary_angles_.half()), sines(cosines.size());
  const MatrixView<float> cos(cosines.data(), piece.tokens, rotary_angles_.half());
  const MatrixView<float> sin(sines.data(), piece.tokens, rotary_angles_.half());
  rotary_angles_.fill(chunk.temporal.subspan(first, piece.tokens),
                      chunk.height.subspan(first, piece.tokens),
                      chunk.width.subspan(first, piece.tokens), cos, sin);
  piece.cos = as_channels(cos);
  piece.sin = as_channels(sin);
  return piece;
}

mil::Tensor SimulatorBackend::run_layers(std::size_t program, ProgramSequence& sequence,
                                         const Piece& piece, mil::Tensor x) {
  mil::Tensors inputs;
  inputs["x"] = std::move(x);
  std::vector<std::size_t> linear;
  for (const std::size_t layer : programs_[program].layers) {
    if (model_.config.text.layer_types[layer] == LayerType::kLinearAttention) {
      linear.push_back(layer);
    }
  }
  for (const std::size_t layer : linear) {
    ProgramSequence::LinearAttention& state = sequence.linear_attention(layer);
    inputs[fmt::format("conv_state_{:02}", layer)] = std::move(state.conv_state);
    inputs[fmt::format("recurrent_state_{:02}", layer)] = std::move(state.recurrent_state);
  }
  if (!linear.empty()) {
    inputs["valid"] = piece.valid;
    inputs["conv_select"] = piece.conv_select;
  }
  mil::Tensors outputs = load(program, 0).run(inputs);
  for (const std::size_t layer : linear) {
    sequence.linear_attention(layer) = {
        std::move(outputs.at(fmt::format("conv_state_{:02}_out", layer))),
        std::move(outputs.at(fmt::format("recurrent_state_{:02}_out", layer)))};
  }
  return std::move(outputs.at("x_out"));
}

mil::Tensor SimulatorBackend::run_attention(std::size_t program, ProgramSequence& sequence,
                                            const Piece& piece, mil::Tensor x) {
  const std::size_t places = piece.context - kTokens;
  const std::size_t kv_dim = model_.config.text.kv_dim();
  ProgramSequence::KvCache& cache = sequence.kv_cache(programs_[program].layers.at(0));
  mil::Tensors outputs = load(program, piece.context)
                             .run({{"x", std::move(x)},
                                   {"cos", piece.cos},
                                   {"sin", piece.sin},
                                   {"mask", piece.mask},
                                   {"k_cache", as_cache(cache.keys, kv_dim, places)},
                                   {"v_cache", as_cache(cache.values, kv_dim, places)}});
  append_rows(outputs.at("k_out"), piece.tokens, cache.keys);
  append_rows(outputs.at("v_out"), piece.tokens, cache.values);
  return std::move(outputs.at("x_out"));
}

void SimulatorBackend::prefill(const ComputeContext& context, SequenceState& state,
                               const TextChunk& chunk, const LayerObserver& observer) {
  auto& sequence = dynamic_cast<ProgramSequence&>(state);
  const MatrixView<float> hidden = chunk.hidden;
  assert(hidden.rows > 0 && hidden.columns == model_.config.text.hidden_size);
  if (sequence.tokens() + hidden.rows > sequence.capacity_tokens()) {
    throw_error(ErrorCode::kInvalidArgument, "sequence", "{} tokens, expected at most {}",
                sequence.tokens() + hidden.rows, sequence.capacity_tokens());
  }
  // By layer: an observer is shown a chunk whole.
  std::map<std::size_t, std::vector<float>> seen;
  for (std::size_t first = 0; first < hidden.rows; first += kTokens) {
    const Piece piece = piece_of(chunk, first, sequence.tokens());
    const MatrixView<float> rows = hidden.rows_from(first, piece.tokens);
    mil::Tensor x = as_channels(rows);
    for (std::size_t program = 0; program < programs_.size(); ++program) {
      if (context.cancel != nullptr) context.cancel->throw_if_cancelled();
      const bool is_attention = programs_[program].kind == ProgramKind::kAttention;
      x = is_attention ? run_attention(program, sequence, piece, std::move(x))
                       : run_layers(program, sequence, piece, std::move(x));
      copy_rows(x, rows);
      for (std::size_t token = 0; token < rows.rows; ++token) {
        if (std::ranges::all_of(rows.row(token), [](float v) { return std::isfinite(v); }))
          continue;
        throw_error(ErrorCode::kCorruptData, programs_[program].name,
                    "a result that is not finite: these values leave FP16's range");
      }
      if (observer && !is_attention) {
        std::vector<float>& all = seen[programs_[program].layers.back()];
        for (std::size_t token = 0; token < rows.rows; ++token) {
          all.insert(all.end(), rows.row(token).begin(), rows.row(token).end());
        }
      }
    }
    sequence.append(piece.tokens);
  }
  for (const auto& [layer, rows] : seen) {
    observer(layer, {rows.data(), hidden.rows, hidden.columns});
  }
}

}  // namespace clefkit::ane
