#include <algorithm>
#include <array>
#include <cassert>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "clefkit/backend/weights.h"
#include "clefkit/base/error.h"
#include "clefkit/base/stopwatch.h"
#include "clefkit/engine/engine.h"
#include "clefkit/engine/vision.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
namespace {

// Of the vision encoder's; four make a token, and the encoder is a few times smaller than the text
// layers.
constexpr std::size_t kPatchesPerTokenOfWork = 16;

// Vision features of a picture or clip, [tokens, hidden_size]; shared with the cache.
using Features = std::shared_ptr<const FloatMatrix>;

// The values of all options, in the record's order, as rows per question in the request's order.
std::vector<std::vector<double>> in_request_order(const Record& record,
                                                  std::span<const double> values) {
  std::vector<std::vector<double>> rows;
  std::size_t index = 0;
  for (const RecordQuestion& question : record.questions) {
    std::vector<double>& row = rows.emplace_back(question.options.size());
    for (const RecordOption& option : question.options) row[option.request_index] = values[index++];
  }
  return rows;
}

}  // namespace

std::vector<TokenSpan> chunk_schedule(const Record& record, std::size_t chunk_tokens) {
  assert(chunk_tokens > 0);
  std::vector<TokenSpan> chunks;
  std::size_t begin = 0;
  for (const std::size_t stop : {record.state.end, record.input_ids.size()}) {
    while (begin < stop) {
      const std::size_t end = std::min(stop, begin + chunk_tokens);
      chunks.push_back({begin, end});
      begin = end;
    }
  }
  return chunks;
}

struct EngineRun::State {
  State(Engine& the_engine, PreparedRequest&& the_prepared, const AskOptions& the_options,
        TraceRecorder* the_trace)
      : engine(the_engine),
        prepared(std::move(the_prepared)),
        options(the_options),
        trace(the_trace),
        // Who looks on is shown every token, so every token is computed.
        use_cache(the_options.use_cache && the_trace == nullptr && the_options.observer == nullptr),
        chunks(chunk_schedule(prepared.record, the_engine.chunk_tokens_)) {}

  ComputeContext context() const { return {engine.executor_, options.cancel, options.times}; }
  const Record& record() const { return prepared.record; }

  void begin();
  void start_sequence();
  void look_at_media();
  void keep_features();
  void embed(const TokenSpan& chunk, MatrixView<float> hidden) const;
  void prefill(const TokenSpan& chunk);
  void read(const ComputeContext& its_context, const TokenSpan& chunk, MatrixView<float> hidden);
  // Waits for a chunk that is read while the next one is computed, and throws what that threw.
  void finish_reading();
  void keep_prefix();
  void decide();

  Engine& engine;
  PreparedRequest prepared;
  const AskOptions options;
  TraceRecorder* const trace;
  const bool use_cache;
  const std::vector<TokenSpan> chunks;
  std::size_t next_chunk = 0;

  HeadInput head_input;
  std::unique_ptr<SequenceState> sequence;
  std::optional<VisionRun> vision;     // While there is something to look at.
  std::vector<std::size_t> looked_at;  // The media that `vision` encodes.
  std::vector<Features> features;      // Of all media, computed or known.
  bool has_begun = false;
  std::optional<Decision> decision;
  std::size_t reused_tokens = 0;
  double prefill_seconds = 0, head_seconds = 0;
  std::future<void> reading;  // Last, so that it has ended before anything else goes.
};

void EngineRun::State::begin() {
  has_begun = true;
  head_input = engine.head_.begin(record());
  if (use_cache) start_sequence();
  if (sequence == nullptr)
    sequence = engine.backend_.backend->new_sequence(record().input_ids.size());
  reused_tokens = sequence->tokens();
  while (next_chunk < chunks.size() && chunks[next_chunk].end <= reused_tokens) ++next_chunk;
  // Media stand before the state, so a known prefix holds them all.
  if (reused_tokens == 0 && !prepared.media->empty()) look_at_media();
  if (!vision) prepared.media.reset();
}

// From where the cache has the record's prefix, if it has.
void EngineRun::State::start_sequence() {
  const std::size_t prefix = record().state.end;
  const PrefixState* const known =
      engine.cache_.find_prefix(std::span(record().input_ids).first(prefix), prepared.media_digest);
  if (known == nullptr) return;
  std::ranges::copy(known->memory.values(), head_input.memory.values().begin());
  head_input.tokens = prefix;
  sequence = known->sequence->clone(record().input_ids.size());
}

void EngineRun::State::look_at_media() {
  std::vector<const PreparedMedia*> missing;
  for (std::size_t i = 0; i < prepared.media->size(); ++i) {
    const PreparedMedia& media = (*prepared.media)[i];
    features.push_back(use_cache ? engine.cache_.find_features(media.digest) : nullptr);
    if (features.back() != nullptr) continue;
    looked_at.push_back(i);
    missing.push_back(&media);
  }
  if (!missing.empty()) {
    vision.emplace(*engine.backend_.backend, engine.model_.config.vision, missing, trace);
  }
}

void EngineRun::State::keep_features() {
  std::vector<FloatMatrix> computed = vision->take_features();
  for (std::size_t i = 0; i < looked_at.size(); ++i) {
    Features& place = features[looked_at[i]];
    place = std::make_shared<const FloatMatrix>(std::move(computed[i]));
    if (use_cache) engine.cache_.insert_features((*prepared.media)[looked_at[i]].digest, place);
  }
  vision.reset();
  prepared.media.reset();
}

// The input of the text layers for the chunk's tokens.
void EngineRun::State::embed(const TokenSpan& chunk, MatrixView<float> hidden) const {
  for (std::size_t i = 0; i < hidden.rows; ++i) {
    const auto id = static_cast<std::size_t>(record().input_ids[chunk.begin + i]);
    const std::span<float> row = hidden.row(i);
    copy_weight_row(engine.embeddings_, id, row);
    if (!has_non_finite(row)) continue;
    const std::array shape{engine.model_.config.text.vocab_size, row.size()};
    check_finite(Engine::kEmbeddingsName, shape, id * row.size(), row);
  }
  // Features take the places of the pad tokens, in order. After a known prefix there are none.
  if (features.empty()) return;
  std::size_t item = 0, row = 0;
  for (const MediaRun& run : record().media_runs) {
    if (row == features[item]->rows()) ++item, row = 0;
    const std::size_t begin = std::max(run.span.begin, chunk.begin);
    for (std::size_t token = begin; token < std::min(run.span.end, chunk.end); ++token) {
      std::ranges::copy(features[item]->row(row + token - run.span.begin),
                        hidden.row(token - chunk.begin).begin());
    }
    row += run.span.size();
  }
}

void EngineRun::State::prefill(const TokenSpan& chunk) {
  const std::size_t tokens = record().input_ids.size();
  const std::size_t count = chunk.end - chunk.begin;
  FloatMatrix buffer(count, engine.model_.config.text.hidden_size);
  const MatrixView<float> hidden = buffer.view();
  const auto positions = [&](const std::vector<std::int32_t>& all) {
    return std::span(all).subspan(chunk.begin, count);
  };
  TextObserver observer;
  if (options.observer != nullptr) observer = *options.observer;
  if (trace != nullptr) {
    observer.layer_output = [&](std::size_t layer, MatrixView<const float> output) {
      trace->add_rows(fmt::format("layers.{}.output", layer), tokens, chunk.begin, output);
      if (options.observer != nullptr && options.observer->layer_output) {
        options.observer->layer_output(layer, output);
      }
    };
  }
  {
    const StageTimer timer(options.times, "embedding");
    embed(chunk, hidden);
  }
  if (trace != nullptr) trace->add_rows("embeddings", tokens, chunk.begin, hidden);
  engine.backend_.backend->prefill(context(), *sequence,
                                   {.hidden = hidden,
                                    .temporal = positions(record().temporal),
                                    .height = positions(record().height),
                                    .width = positions(record().width)},
                                   observer);
  finish_reading();
  if (trace == nullptr && engine.backend_.backend->leaves_processor_free()) {
    // Stage times are one thread's.
    reading = std::async(std::launch::async, [this, chunk, rows = std::move(buffer)]() mutable {
      read({engine.executor_, options.cancel}, chunk, rows.view());
    });
  } else {
    read(context(), chunk, hidden);
  }
  if (use_cache && chunk.end == record().state.end) {
    finish_reading();
    keep_prefix();
  }
}

// What the processor does with the text layers' output: the final norm, and the head's reading.
void EngineRun::State::read(const ComputeContext& its_context, const TokenSpan& chunk,
                            MatrixView<float> hidden) {
  rms_norm(its_context, hidden, engine.final_norm_, engine.model_.config.text.rms_norm_eps, hidden);
  if (trace != nullptr) {
    trace->add_rows("final_norm", record().input_ids.size(), chunk.begin, hidden);
  }
  const StageTimer timer(its_context.times, "head");
  engine.head_.read(its_context, record(), hidden, head_input);
}

void EngineRun::State::finish_reading() {
  if (reading.valid()) reading.get();
}

// Remembers the prefix, of which all tokens were just read.
void EngineRun::State::keep_prefix() {
  const std::size_t prefix = record().state.end;
  const std::size_t memory_values = prefix * head_input.memory.columns();
  if (!engine.cache_.accepts(sequence->size_bytes() + memory_values * sizeof(float))) return;
  PrefixState state{sequence->clone(prefix), FloatMatrix(prefix, head_input.memory.columns())};
  std::ranges::copy(head_input.memory.values().first(memory_values), state.memory.values().begin());
  engine.cache_.insert_prefix(std::span(record().input_ids).first(prefix), prepared.media_digest,
                              std::move(state));
}

void EngineRun::State::decide() {
  finish_reading();
  // The cache of the sequence is the largest thing here: it is gone before the head needs memory.
  sequence.reset();
  features.clear();
  const StageTimer timer(options.times, "head");
  if (trace != nullptr) trace->add("head.memory", head_input.memory.view());
  decision = engine.head_.decide(context(), record(), std::move(head_input));
}

EngineRun::EngineRun(Engine& engine, PreparedRequest prepared, const AskOptions& options,
                     TraceRecorder* trace)
    : state_(std::make_unique<State>(engine, std::move(prepared), options, trace)) {}

EngineRun::EngineRun(EngineRun&&) noexcept = default;
EngineRun::~EngineRun() = default;

bool EngineRun::is_done() const { return state_->decision.has_value(); }

std::size_t EngineRun::remaining_tokens() const {
  const State& run = *state_;
  std::size_t tokens = 0;
  for (const TokenSpan& chunk : std::span(run.chunks).subspan(run.next_chunk)) {
    tokens += chunk.size();
  }
  if (run.vision) return tokens + run.vision->remaining_patches() / kPatchesPerTokenOfWork;
  if (run.has_begun) return tokens;
  std::size_t patches = 0;
  for (const PreparedMedia& media : *run.prepared.media) {
    patches += media.item.grid_t * media.item.grid_h * media.item.grid_w;
  }
  return tokens + patches / kPatchesPerTokenOfWork;
}

bool EngineRun::is_reading_prefix_of(const PreparedRequest& other) const {
  const State& run = *state_;
  const std::size_t prefix = run.record().state.end;
  const bool has_read_it =
      run.next_chunk == run.chunks.size() || run.chunks[run.next_chunk].begin >= prefix;
  return run.use_cache && !has_read_it && other.record.state.end == prefix &&
         other.media_digest == run.prepared.media_digest &&
         std::ranges::equal(std::span(run.record().input_ids).first(prefix),
                            std::span(other.record.input_ids).first(prefix));
}

void EngineRun::step() {
  State& run = *state_;
  assert(!is_done());
  const Stopwatch stopwatch;
  if (!run.has_begun) run.begin();
  if (run.vision) {
    const StageTimer timer(run.options.times, "vision");
    run.vision->step(run.context());
    if (run.vision->is_done()) run.keep_features();
    run.prefill_seconds += stopwatch.seconds();
    return;
  }
  if (run.next_chunk < run.chunks.size()) {
    const TokenSpan& chunk = run.chunks[run.next_chunk++];
    run.prefill(chunk);
    run.prefill_seconds += stopwatch.seconds();
    if (run.options.progress) run.options.progress(chunk.end, run.record().input_ids.size());
    return;
  }
  run.decide();
  run.head_seconds = stopwatch.seconds();
}

Response EngineRun::response(const Request& request) {
  assert(is_done());
  const State& run = *state_;
  Response response;
  response.model = request.model.value_or(run.engine.model_.name);
  response.probabilities = in_request_order(run.record(), run.decision->probabilities);
  response.answers =
      answers_to_json(request.questions, response.probabilities, run.options.answers);
  response.input_tokens = run.record().input_ids.size();
  response.reused_tokens = run.reused_tokens;
  response.dropped_state_tokens = run.record().dropped_state_tokens;
  response.encode_seconds = run.prepared.seconds;
  response.prefill_seconds = run.prefill_seconds;
  response.head_seconds = run.head_seconds;
  return response;
}

const Decision& EngineRun::decision() const { return *state_->decision; }
const Record& EngineRun::record() const { return state_->record(); }

}  // namespace clefkit
