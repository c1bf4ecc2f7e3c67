#include "clefkit/backend/ane/program_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "clefkit/backend/ane/half_rows.h"
#include "clefkit/base/error.h"
#include "clefkit/programs/attention.h"
#include "clefkit/programs/delta_rule.h"

namespace clefkit::ane {
namespace {

constexpr auto kTokens = static_cast<std::size_t>(kProgramTokens);

const Half kOne = to_half(1.0f);

MatrixView<const Half> rows_of(const std::vector<Half>& values, std::size_t columns) {
  return {values.data(), values.size() / columns, columns};
}

// Which places a token sees: all of the past, itself, and what came before it in its chunk.
std::vector<Half> attention_mask(std::size_t past, std::size_t context) {
  std::vector<Half> mask(kTokens * context);
  const std::size_t cache = context - kTokens;
  const Half hidden = to_half(kMaskedScore);
  for (std::size_t token = 0; token < kTokens; ++token) {
    Half* const row = mask.data() + token * context;
    std::fill(row + past, row + cache, hidden);
    std::fill(row + cache + token + 1, row + context, hidden);
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

ProgramBackend::ProgramBackend(const Model& model, std::unique_ptr<Device> device,
                               const ProgramForm& form, std::unique_ptr<Backend> vision_fallback,
                               const ProgramSetOptions& options)
    : model_(model),
      device_(std::move(device)),
      vision_fallback_(std::move(vision_fallback)),
      rotary_angles_(model.config.text.rope_theta, model.config.text.rotary_dim,
                     model.config.text.mrope_section),
      programs_(model, form),
      loaded_(*device_, options) {
  if (model.config.has_vision()) {
    vision_.emplace(model, loaded_, programs_.plan().size(), form.spellings);
  }
}

std::size_t ProgramBackend::chunk_tokens() const { return kTokens; }

std::unique_ptr<SequenceState> ProgramBackend::new_sequence(std::size_t capacity_tokens) const {
  return std::make_unique<ProgramSequence>(model_.config.text, capacity_tokens);
}

LoadedProgram& ProgramBackend::load(std::size_t program, std::size_t context) {
  const ProgramSet::Key key{program, context};
  return loaded_.get(key, [&] {
    residents_.erase(key);
    return programs_.source(program, context);
  });
}

ProgramBackend::Piece ProgramBackend::piece_of(const TextChunk& chunk, std::size_t first,
                                               std::size_t past) const {
  Piece piece;
  piece.tokens = std::min(kTokens, chunk.hidden.rows - first);
  piece.past = past;
  piece.valid.resize(kTokens);
  std::fill_n(piece.valid.begin(), piece.tokens, kOne);
  const std::size_t taps = model_.config.text.linear_conv_kernel_dim - 1;
  piece.conv_select.resize((taps + kTokens) * taps);
  for (std::size_t i = 0; i < taps; ++i) {
    piece.conv_select[(piece.tokens + i) * taps + i] = kOne;
  }
  piece.context = context_for(past);
  piece.mask = attention_mask(past, piece.context);
  std::vector<float> cosines(piece.tokens * rotary_angles_.half()), sines(cosines.size());
  const MatrixView<float> cos(cosines.data(), piece.tokens, rotary_angles_.half());
  const MatrixView<float> sin(sines.data(), piece.tokens, rotary_angles_.half());
  rotary_angles_.fill(chunk.temporal.subspan(first, piece.tokens),
                      chunk.height.subspan(first, piece.tokens),
                      chunk.width.subspan(first, piece.tokens), cos, sin);
  piece.cos = as_channels(cos, kTokens);
  piece.sin = as_channels(sin, kTokens);
  return piece;
}

void ProgramBackend::run_layers(std::size_t program, ProgramSequence& sequence, const Piece& piece,
                                MatrixView<Half> x) {
  LoadedProgram& loaded = load(program, 0);
  std::vector<std::size_t> linear;
  for (const std::size_t layer : programs_.plan()[program].layers) {
    if (model_.config.text.layer_types[layer] == LayerType::kLinearAttention) {
      linear.push_back(layer);
    }
  }
  loaded.input("x").write_columns(0, x);
  for (const std::size_t layer : linear) {
    const ProgramSequence::LinearAttention& state = sequence.linear_attention(layer);
    loaded.input(fmt::format("conv_state_{:02}", layer)).write(state.conv_state);
    loaded.input(fmt::format("recurrent_state_{:02}", layer)).write(state.recurrent_state);
  }
  if (!linear.empty()) {
    loaded.input("valid").write(piece.valid);
    loaded.input("conv_select").write(piece.conv_select);
  }
  loaded_.evaluate(loaded);
  for (const std::size_t layer : linear) {
    ProgramSequence::LinearAttention& state = sequence.linear_attention(layer);
    loaded.output(fmt::format("conv_state_{:02}_out", layer)).read(state.conv_state);
    loaded.output(fmt::format("recurrent_state_{:02}_out", layer)).read(state.recurrent_state);
  }
  loaded.output("x_out").read_columns(0, x);
}

void ProgramBackend::run_attention(std::size_t program, ProgramSequence& sequence,
                                   const Piece& piece, MatrixView<Half> x) {
  LoadedProgram& loaded = load(program, piece.context);
  const std::size_t kv_dim = model_.config.text.kv_dim();
  ProgramSequence::KvCache& cache = sequence.kv_cache(programs_.plan()[program].layers.at(0));
  loaded.input("x").write_columns(0, x);
  loaded.input("cos").write(piece.cos);
  loaded.input("sin").write(piece.sin);
  loaded.input("mask").write(piece.mask);
  // What is there of this sequence need not be written again. Behind its end the mask hides what
  // another one left.
  Resident& resident = residents_[{program, piece.context}];
  const std::size_t known = resident.sequence == sequence.id() ? resident.tokens : 0;
  const auto missing = [&](const std::vector<Half>& rows) {
    return rows_of(rows, kv_dim).rows_from(known, piece.past - known);
  };
  loaded.input("k_cache").write_columns(known, missing(cache.keys));
  loaded.input("v_cache").write_columns(known, missing(cache.values));
  resident = {sequence.id(), piece.past};
  loaded_.evaluate(loaded);
  const auto append = [&](const char* port, std::vector<Half>& rows) {
    rows.resize((piece.past + piece.tokens) * kv_dim);
    loaded.output(port).read_columns(
        0, MatrixView<Half>(rows.data(), piece.past + piece.tokens, kv_dim)
               .rows_from(piece.past, piece.tokens));
  };
  append("k_out", cache.keys);
  append("v_out", cache.values);
  loaded.output("x_out").read_columns(0, x);
}

void ProgramBackend::prefill(const ComputeContext& context, SequenceState& state,
                             const TextChunk& chunk, const TextObserver& observer) {
  auto& sequence = dynamic_cast<ProgramSequence&>(state);
  const MatrixView<float> hidden = chunk.hidden;
  assert(hidden.rows > 0 && hidden.columns == model_.config.text.hidden_size);
  if (sequence.tokens() + hidden.rows > sequence.capacity_tokens()) {
    throw_error(ErrorCode::kInvalidArgument, "sequence", "{} tokens, expected at most {}",
                sequence.tokens() + hidden.rows, sequence.capacity_tokens());
  }
  const std::vector<PlannedProgram>& plan = programs_.plan();
  // By layer: an observer is shown a chunk whole.
  std::map<std::size_t, std::vector<float>> seen;
  std::vector<Half> values(kTokens * hidden.columns);
  const MatrixView<Half> x(values.data(), kTokens, hidden.columns);
  for (std::size_t first = 0; first < hidden.rows; first += kTokens) {
    const Piece piece = piece_of(chunk, first, sequence.tokens());
    const MatrixView<float> rows = hidden.rows_from(first, piece.tokens);
    std::ranges::fill(values, Half());
    copy_rows(rows, x.rows_from(0, rows.rows));
    const auto to_rows = [&] { copy_rows(x.rows_from(0, rows.rows), rows); };
    for (std::size_t program = 0; program < plan.size(); ++program) {
      if (context.cancel != nullptr) context.cancel->throw_if_cancelled();
      const bool is_attention = plan[program].kind == ProgramKind::kAttention;
      is_attention ? run_attention(program, sequence, piece, x)
                   : run_layers(program, sequence, piece, x);
      if (!observer.layer_output || is_attention) continue;
      to_rows();
      std::vector<float>& all = seen[plan[program].layers.back()];
      for (std::size_t token = 0; token < rows.rows; ++token) {
        all.insert(all.end(), rows.row(token).begin(), rows.row(token).end());
      }
    }
    to_rows();
    sequence.append(piece.tokens);
  }
  for (const auto& [layer, rows] : seen) {
    if (context.cancel != nullptr) context.cancel->throw_if_cancelled();
    observer.layer_output(layer, {rows.data(), hidden.rows, hidden.columns});
  }
}

std::size_t ProgramBackend::vision_patches() const {
  return vision_ ? vision_->patches() : vision_fallback_->vision_patches();
}

void ProgramBackend::encode_vision(const ComputeContext& context, const VisionBatch& batch,
                                   const VisionObserver& observer) {
  if (vision_ && vision_->holds(batch.segments)) {
    vision_->encode(context, batch, observer);
  } else {
    vision_fallback_->encode_vision(context, batch, observer);
  }
}

}  // namespace clefkit::ane
