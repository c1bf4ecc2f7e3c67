#include "clefkit/engine/engine.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

#include "clefkit/backend/weights.h"
#include "clefkit/base/error.h"
#include "clefkit/base/sha256.h"
#include "clefkit/base/stopwatch.h"

namespace clefkit {
namespace {

constexpr char kFinalNormName[] = "model.language_model.norm.weight";

Precision choose_precision(const Model& model, const EngineOptions& options) {
  const bool palettized = std::ranges::any_of(model.weights, [](const auto& named) {
    return std::holds_alternative<Lut6Matrix>(named.second);
  });
  if (options.precision == Precision::kFast && palettized && !model.is_fast_accurate &&
      !options.allow_unproven_fast) {
    throw_error(ErrorCode::kUnsupported, "precision",
                "fast has not been measured to be accurate enough for {}, expected high, or first "
                "clefkit verify {} --precision fast --against-precision high --requests FILE "
                "--accept-fast",
                model.name, model.directory.string());
  }
  return options.precision.value_or(palettized ? Precision::kHigh : Precision::kExact);
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

}  // namespace

Json usage_to_json(const Response& response) {
  Json usage =
      Json::object({{"input_tokens", std::uint64_t{response.input_tokens}}, {"output_tokens", 0}});
  if (response.reused_tokens > 0) {
    usage.set("x_reused_tokens", std::uint64_t{response.reused_tokens});
  }
  if (response.dropped_state_tokens > 0) {
    usage.set("x_dropped_state_tokens", std::uint64_t{response.dropped_state_tokens});
  }
  return usage;
}

Json response_to_json(const Response& response) {
  return Json::object({{"model", response.model},
                       {"answers", response.answers},
                       {"usage", usage_to_json(response)}});
}

Engine::Engine(Model model, const EngineOptions& options)
    : model_(std::move(model)),
      executor_(options.threads),
      tokenizer_(model_.tokenizer_json, "tokenizer.json", options.pretokenizer),
      precision_(choose_precision(model_, options)),
      backend_(choose_backend(options.backend, model_, precision_, options.spellings)),
      chunk_tokens_(options.chunk_tokens != 0 ? options.chunk_tokens : backend().chunk_tokens()),
      embeddings_(weight_matrix(model_, kEmbeddingsName, model_.config.text.vocab_size,
                                model_.config.text.hidden_size)),
      final_norm_(norm_multiplier(model_, kFinalNormName, model_.config.text.hidden_size)),
      head_(model_),
      cache_(options.cache_bytes) {}

PreparedRequest Engine::prepare(const Request& request, const AskOptions& options) const {
  const Stopwatch stopwatch;
  auto media = std::make_shared<const std::vector<PreparedMedia>>(
      prepare_media(model_, request, options.media, options.limits.max_tokens, options.cancel));
  PreparedRequest prepared = prepare(request, std::move(media), options);
  prepared.seconds = stopwatch.seconds();
  return prepared;
}

PreparedRequest Engine::prepare(const Request& request,
                                std::shared_ptr<const std::vector<PreparedMedia>> media,
                                const AskOptions& options) const {
  const Stopwatch stopwatch;
  PreparedRequest prepared;
  prepared.media = std::move(media);
  prepared.record = encode_record(tokenizer_, request, media_items(*prepared.media), options.limits,
                                  options.cancel);
  const auto vocab_size = static_cast<std::int32_t>(model_.config.text.vocab_size);
  for (const std::int32_t id : prepared.record.input_ids) {
    if (id < 0 || id >= vocab_size) {
      throw_error(ErrorCode::kCorruptData, "tokenizer.json", "token id {}, expected below {}", id,
                  vocab_size);
    }
  }
  if (!prepared.media->empty()) {
    check_pad_tokens(tokenizer_, model_.config);
    std::string digests;
    for (const PreparedMedia& item : *prepared.media) digests += item.digest;
    prepared.media_digest = sha256_hex(as_bytes(digests));
  }
  prepared.seconds = stopwatch.seconds();
  return prepared;
}

EngineRun Engine::start(PreparedRequest prepared, const AskOptions& options) {
  return EngineRun(*this, std::move(prepared), options);
}

Response Engine::ask(const Request& request, const AskOptions& options) {
  EngineRun run = start(prepare(request, options), options);
  while (!run.is_done()) run.step();
  return run.response(request);
}

Trace Engine::trace(const Request& request, const AskOptions& options,
                    const std::string& name_prefix) {
  TraceRecorder recorder(name_prefix);
  EngineRun run(*this, prepare(request, options), options, &recorder);
  while (!run.is_done()) run.step();

  const Record& record = run.record();
  recorder.add("input_ids", {record.input_ids.size()},
               std::vector<std::int64_t>(record.input_ids.begin(), record.input_ids.end()));
  std::vector<std::int64_t> positions;
  for (const auto* axis : {&record.temporal, &record.height, &record.width}) {
    positions.insert(positions.end(), axis->begin(), axis->end());
  }
  recorder.add("position_ids", {3, record.input_ids.size()}, std::move(positions));
  const Decision& decision = run.decision();
  recorder.add("head.evidence", decision.evidence.view());
  recorder.add("head.fields", decision.fields.view());
  recorder.add("head.logits", {decision.logits.size()}, decision.logits);
  recorder.add("head.probabilities", {decision.probabilities.size()},
               std::vector<float>(decision.probabilities.begin(), decision.probabilities.end()));
  return std::move(recorder).take();
}

}  // namespace clefkit
