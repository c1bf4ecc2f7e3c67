#include "clefkit/engine/engine.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <utility>
#include <variant>

#include "clefkit/backend/factory.h"
#include "clefkit/backend/weights.h"
#include "clefkit/base/error.h"
#include "clefkit/base/sha256.h"
#include "clefkit/engine/vision.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
namespace {

constexpr char kEmbeddingsName[] = "model.language_model.embed_tokens.weight";
constexpr char kFinalNormName[] = "model.language_model.norm.weight";

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Precision default_precision(const Model& model) {
  const bool palettized = std::ranges::any_of(model.weights, [](const auto& named) {
    return std::holds_alternative<Lut6Matrix>(named.second);
  });
  return palettized ? Precision::kHigh : Precision::kExact;
}

// The record takes the pads from the tokenizer; the model was trained with its configuration's.
void check_pad_tokens(const Tokenizer& tokenizer, const ModelConfig& config) {
  for (const auto& [text, expected] : {std::pair{"<|image_pad|>", config.image_token_id},
                                       std::pair{"<|video_pad|>", config.video_token_id}}) {
    if (tokenizer.token_id(text) == expected) continue;
    throw_error(ErrorCode::kCorruptData, "tokenizer.json",
                "{} is not token {}, expected as config.json says", text, expected);
  }
}

// The values of all options, in the record's order, as rows per question in the request's order.
std::vector<std::vector<double>> in_request_order(const Record& record,
                                                  std::span<const float> values) {
  std::vector<std::vector<double>> rows;
  std::size_t index = 0;
  for (const RecordQuestion& question : record.questions) {
    std::vector<double>& row = rows.emplace_back(question.options.size());
    for (const RecordOption& option : question.options) row[option.request_index] = values[index++];
  }
  return rows;
}

}  // namespace

Json response_to_json(const Response& response) {
  Json usage =
      Json::object({{"input_tokens", std::uint64_t{response.input_tokens}}, {"output_tokens", 0}});
  if (response.reused_tokens > 0) {
    usage.set("x_reused_tokens", std::uint64_t{response.reused_tokens});
  }
  if (response.dropped_state_tokens > 0) {
    usage.set("x_dropped_state_tokens", std::uint64_t{response.dropped_state_tokens});
  }
  return Json::object(
      {{"model", response.model}, {"answers", response.answers}, {"usage", std::move(usage)}});
}

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

Engine::Engine(Model model, const EngineOptions& options)
    : model_(std::move(model)),
      executor_(options.threads),
      tokenizer_(model_.tokenizer_json, "tokenizer.json", options.pretokenizer),
      precision_(options.precision.value_or(default_precision(model_))),
      backend_(make_backend(options.backend, model_, precision_)),
      chunk_tokens_(options.chunk_tokens != 0 ? options.chunk_tokens : backend_->chunk_tokens()),
      embeddings_(weight_matrix(model_, kEmbeddingsName, model_.config.text.vocab_size,
                                model_.config.text.hidden_size)),
      final_norm_(norm_multiplier(model_, kFinalNormName, model_.config.text.hidden_size)),
      head_(model_),
      cache_(options.cache_bytes) {}

Engine::Input Engine::encode(const Request& request, const AskOptions& options) const {
  Input input;
  input.media =
      prepare_media(model_, request, options.media, options.limits.max_tokens, options.cancel);
  input.record = encode_record(tokenizer_, request, media_items(input.media), options.limits);
  const auto vocab_size = static_cast<std::int32_t>(model_.config.text.vocab_size);
  for (const std::int32_t id : input.record.input_ids) {
    if (id < 0 || id >= vocab_size) {
      throw_error(ErrorCode::kCorruptData, "tokenizer.json", "token id {}, expected below {}", id,
                  vocab_size);
    }
  }
  if (input.media.empty()) return input;
  check_pad_tokens(tokenizer_, model_.config);
  std::string digests;
  for (const PreparedMedia& media : input.media) digests += media.digest;
  input.media_digest =
      sha256_hex({reinterpret_cast<const std::uint8_t*>(digests.data()), digests.size()});
  return input;
}

std::vector<Engine::Features> Engine::encode_media(const ComputeContext& context,
                                                   const Input& input, bool use_cache,
                                                   TraceRecorder* trace) {
  if (input.media.empty()) return {};
  const StageTimer timer(context.times, "vision");
  std::vector<Features> features;
  std::vector<const PreparedMedia*> missing;
  for (const PreparedMedia& media : input.media) {
    features.push_back(use_cache ? cache_.find_features(media.digest) : nullptr);
    if (features.back() == nullptr) missing.push_back(&media);
  }
  std::vector<FloatMatrix> computed =
      encode_vision(context, *backend_, model_.config.vision, missing, trace);
  std::size_t next = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i] != nullptr) continue;
    features[i] = std::make_shared<const FloatMatrix>(std::move(computed[next++]));
    if (use_cache) cache_.insert_features(input.media[i].digest, features[i]);
  }
  return features;
}

void Engine::embed(const Record& record, std::span<const Features> features, const TokenSpan& chunk,
                   MatrixView<float> hidden) const {
  for (std::size_t i = 0; i < hidden.rows; ++i) {
    const auto id = static_cast<std::size_t>(record.input_ids[chunk.begin + i]);
    const std::span<float> row = hidden.row(i);
    copy_weight_row(embeddings_, id, row);
    if (!has_non_finite(row)) continue;
    const std::array shape{model_.config.text.vocab_size, row.size()};
    check_finite(kEmbeddingsName, shape, id * row.size(), row);
  }
  // Features take the places of the pad tokens, in order. After a known prefix there are none.
  if (features.empty()) return;
  std::size_t item = 0, row = 0;
  for (const MediaRun& run : record.media_runs) {
    if (row == features[item]->rows()) ++item, row = 0;
    const std::size_t begin = std::max(run.span.begin, chunk.begin);
    for (std::size_t token = begin; token < std::min(run.span.end, chunk.end); ++token) {
      std::ranges::copy(features[item]->row(row + token - run.span.begin),
                        hidden.row(token - chunk.begin).begin());
    }
    row += run.span.size();
  }
}

std::unique_ptr<SequenceState> Engine::start_sequence(const Input& input, HeadInput& head_input) {
  const std::size_t tokens = input.record.input_ids.size();
  const std::size_t prefix = input.record.state.end;
  const PrefixState* const known =
      cache_.find_prefix(std::span(input.record.input_ids).first(prefix), input.media_digest);
  if (known == nullptr) return backend_->new_sequence(tokens);
  std::ranges::copy(known->memory.values(), head_input.memory.values().begin());
  head_input.tokens = prefix;
  return known->sequence->clone(tokens);
}

void Engine::keep_prefix(const Input& input, const SequenceState& sequence,
                         const HeadInput& head_input) {
  const std::size_t prefix = input.record.state.end;
  const std::size_t memory_values = prefix * head_input.memory.columns();
  if (!cache_.accepts(sequence.size_bytes() + memory_values * sizeof(float))) return;
  PrefixState state{sequence.clone(prefix), FloatMatrix(prefix, head_input.memory.columns())};
  std::ranges::copy(head_input.memory.values().first(memory_values), state.memory.values().begin());
  cache_.insert_prefix(std::span(input.record.input_ids).first(prefix), input.media_digest,
                       std::move(state));
}

Engine::Run Engine::run(Input& input, const AskOptions& options, TraceRecorder* trace) {
  const Record& record = input.record;
  const ComputeContext context{executor_, options.cancel, options.times};
  const std::size_t tokens = record.input_ids.size();
  Run run;
  const Stopwatch prefill;
  HeadInput head_input = head_.begin(record);
  // The cache of the sequence is the largest thing here: it is gone before the head needs memory.
  {
    // A trace shows every token, so it computes every token.
    const bool use_cache = options.use_cache && trace == nullptr;
    const std::unique_ptr<SequenceState> sequence =
        use_cache ? start_sequence(input, head_input) : backend_->new_sequence(tokens);
    run.reused_tokens = sequence->tokens();
    // Media stand before the state, so a known prefix holds them all.
    std::vector<Features> features;
    if (run.reused_tokens == 0) features = encode_media(context, input, use_cache, trace);
    input.media.clear();  // Their pixels may take hundreds of megabytes.
    FloatMatrix buffer(std::min(tokens, chunk_tokens_), model_.config.text.hidden_size);
    for (const TokenSpan& chunk : chunk_schedule(record, chunk_tokens_)) {
      if (chunk.end <= run.reused_tokens) continue;
      const std::size_t count = chunk.end - chunk.begin;
      const MatrixView<float> hidden = buffer.view().rows_from(0, count);
      const auto positions = [&](const std::vector<std::int32_t>& all) {
        return std::span(all).subspan(chunk.begin, count);
      };
      LayerObserver observer;
      if (trace != nullptr) {
        observer = [&](std::size_t layer, MatrixView<const float> output) {
          trace->add_rows(fmt::format("layers.{}.output", layer), tokens, chunk.begin, output);
        };
      }

      {
        const StageTimer timer(context.times, "embedding");
        embed(record, features, chunk, hidden);
      }
      if (trace != nullptr) trace->add_rows("embeddings", tokens, chunk.begin, hidden);
      backend_->prefill(context, *sequence,
                        {.hidden = hidden,
                         .temporal = positions(record.temporal),
                         .height = positions(record.height),
                         .width = positions(record.width)},
                        observer);
      rms_norm(context, hidden, final_norm_, model_.config.text.rms_norm_eps, hidden);
      if (trace != nullptr) trace->add_rows("final_norm", tokens, chunk.begin, hidden);
      {
        const StageTimer timer(context.times, "head");
        head_.read(context, record, hidden, head_input);
      }
      if (use_cache && chunk.end == record.state.end) keep_prefix(input, *sequence, head_input);
      if (options.progress) options.progress(chunk.end, tokens);
    }
  }
  run.prefill_seconds = prefill.seconds();

  const Stopwatch head;
  const StageTimer timer(context.times, "head");
  if (trace != nullptr) trace->add("head.memory", head_input.memory.view());
  run.decision = head_.decide(context, record, std::move(head_input));
  run.head_seconds = head.seconds();
  return run;
}

Response Engine::ask(const Request& request, const AskOptions& options) {
  const Stopwatch encoding;
  Input input = encode(request, options);
  const Record& record = input.record;
  const double encode_seconds = encoding.seconds();
  const Run result = run(input, options, nullptr);

  Response response;
  response.model = request.model.value_or(model_.name);
  response.probabilities = in_request_order(record, result.decision.probabilities);
  response.answers = answers_to_json(request.questions, response.probabilities, options.answers);
  response.input_tokens = record.input_ids.size();
  response.reused_tokens = result.reused_tokens;
  response.dropped_state_tokens = record.dropped_state_tokens;
  response.encode_seconds = encode_seconds;
  response.prefill_seconds = result.prefill_seconds;
  response.head_seconds = result.head_seconds;
  return response;
}

Trace Engine::trace(const Request& request, const AskOptions& options,
                    const std::string& name_prefix) {
  Input input = encode(request, options);
  const Record& record = input.record;
  const std::size_t tokens = record.input_ids.size();
  TraceRecorder recorder(name_prefix);
  const Run result = run(input, options, &recorder);

  recorder.add("input_ids", {tokens},
               std::vector<std::int64_t>(record.input_ids.begin(), record.input_ids.end()));
  std::vector<std::int64_t> positions;
  for (const auto* axis : {&record.temporal, &record.height, &record.width}) {
    positions.insert(positions.end(), axis->begin(), axis->end());
  }
  recorder.add("position_ids", {3, tokens}, std::move(positions));
  recorder.add("head.evidence", result.decision.evidence.view());
  recorder.add("head.fields", result.decision.fields.view());
  recorder.add("head.logits", {result.decision.logits.size()}, result.decision.logits);
  recorder.add("head.probabilities", {result.decision.probabilities.size()},
               result.decision.probabilities);
  return std::move(recorder).take();
}

}  // namespace clefkit
