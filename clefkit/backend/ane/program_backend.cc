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

constexpr std::size_t kLongest = kAttentionContexts[std::size(kAttentionContexts) - 1];
// The tokens from here on have no place in any cache.
constexpr std::size_t kLate = kLongest - kTokens;

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

// How many of the tokens [past, past + tokens), the last ones, are late.
std::size_t late_tokens(std::size_t past, std::size_t tokens) {
  return past + tokens - std::clamp(kLate, past, past + tokens);
}

// The smallest context that holds what is cached and one call's tokens.
std::size_t context_for(std::size_t cached) {
  assert(cached <= kLate);
  return *std::ranges::lower_bound(kAttentionContexts, cached + kTokens);
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
                                               ProgramSequence& sequence) const {
  Piece piece;
  piece.tokens = std::min(kTokens, chunk.hidden.rows - first);
  piece.past = sequence.tokens();
  piece.valid.resize(kTokens);
  std::fill_n(piece.valid.begin(), piece.tokens, kOne);
  const std::size_t taps = model_.config.text.linear_conv_kernel_dim - 1;
  piece.conv_select.resize((taps + kTokens) * taps);
  for (std::size_t i = 0; i < taps; ++i) {
    piece.conv_select[(piece.tokens + i) * taps + i] = kOne;
  }
  piece.cached = std::min(piece.past, kLate);
  piece.repeated = piece.past - piece.cached;
  piece.context = context_for(piece.cached);
  piece.mask = attention_mask(piece.cached, piece.context);
  const std::size_t half = rotary_angles_.half(), columns = piece.repeated + piece.tokens;
  ProgramSequence::LateAngles& late = sequence.late_angles();
  std::vector<float> cosines = late.cos, sines = late.sin;
  assert(cosines.size() == piece.repeated * half);
  cosines.resize(columns * half);
  sines.resize(columns * half);
  const MatrixView<float> cos(cosines.data(), columns, half), sin(sines.data(), columns, half);
  rotary_angles_.fill(
      chunk.temporal.subspan(first, piece.tokens), chunk.height.subspan(first, piece.tokens),
      chunk.width.subspan(first, piece.tokens), cos.rows_from(piece.repeated, piece.tokens),
      sin.rows_from(piece.repeated, piece.tokens));
  piece.cos = as_channels(cos, kTokens);
  piece.sin = as_channels(sin, kTokens);
  const auto own_late = static_cast<std::ptrdiff_t>(late_tokens(piece.past, piece.tokens) * half);
  late.cos.insert(late.cos.end(), cosines.end() - own_late, cosines.end());
  late.sin.insert(late.sin.end(), sines.end() - own_late, sines.end());
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
  assert(cache.late_inputs.size() == piece.repeated * x.columns);
  const std::size_t free_columns = kTokens - piece.repeated;
  loaded.input("x").write_columns(0, rows_of(cache.late_inputs, x.columns));
  loaded.input("x").write_columns(piece.repeated, x.rows_from(0, free_columns));
  loaded.input("cos").write(piece.cos);
  loaded.input("sin").write(piece.sin);
  loaded.input("mask").write(piece.mask);
  // What is there of this sequence need not be written again. Behind its end the mask hides what
  // another one left.
  Resident& resident = residents_[{program, piece.context}];
  const std::size_t known = resident.sequence == sequence.id() ? resident.tokens : 0;
  const auto missing = [&](const std::vector<Half>& rows) {
    return rows_of(rows, kv_dim).rows_from(known, piece.cached - known);
  };
  loaded.input("k_cache").write_columns(known, missing(cache.keys));
  loaded.input("v_cache").write_columns(known, missing(cache.values));
  resident = {sequence.id(), piece.cached};
  loaded_.evaluate(loaded);
  const auto append = [&](const char* port, std::vector<Half>& rows) {
    rows.resize((piece.past + piece.tokens) * kv_dim);
    loaded.output(port).read_columns(
        piece.repeated, MatrixView<Half>(rows.data(), piece.past + piece.tokens, kv_dim)
                            .rows_from(piece.past, piece.tokens));
  };
  append("k_out", cache.keys);
  append("v_out", cache.values);
  const std::size_t late = late_tokens(piece.past, piece.tokens);
  const MatrixView<Half> late_rows = x.rows_from(piece.tokens - late, late);
  cache.late_inputs.insert(cache.late_inputs.end(), late_rows.data,
                           late_rows.data + late * x.columns);
  loaded.output("x_out").read_columns(piece.repeated, x.rows_from(0, free_columns));
}

void ProgramBackend::prefill(const ComputeContext& context, SequenceState& state,
                             const TextChunk& chunk, const TextObserver& observer) {
  auto& sequence = dynamic_cast<ProgramSequence&>(state);
  const MatrixView<float> hidden = chunk.hidden;
  assert(hidden.rows > 0 && hidden.columns == model_.config.text.hidden_size);
  if (sequence.capacity_tokens() > kLongest) {
    throw_error(ErrorCode::kUnsupported, "record", "{} tokens, expected at most {} on this backend",
                sequence.capacity_tokens(), kLongest);
  }
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
    const Piece piece = piece_of(chunk, first, sequence);
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
