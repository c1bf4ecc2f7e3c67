#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/backend/factory.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/json.h"
#include "clefkit/engine/decision_head.h"
#include "clefkit/engine/media.h"
#include "clefkit/engine/record.h"
#include "clefkit/engine/result_cache.h"
#include "clefkit/engine/trace.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"
#include "clefkit/questions/answers.h"
#include "clefkit/questions/request.h"
#include "clefkit/text/tokenizer.h"

namespace clefkit {

struct EngineOptions {
  std::size_t threads = 0;               // 0: as many as this process may use.
  std::optional<Precision> precision{};  // Default: kExact for dense weights, else kHigh.
  // kFast also for a bundle that it has not been shown to be accurate enough for: to measure it.
  bool allow_unproven_fast = false;
  std::string backend = "auto";
  std::optional<Spellings> spellings{};  // Of a backend's programs: choose_backend.
  Pretokenizer pretokenizer = Pretokenizer::kFile;
  std::size_t chunk_tokens = 0;  // Tokens of one prefill call; 0: what the backend likes best.
  // Memory for what earlier requests computed, the states of their prefixes and the features of
  // their pictures and clips; 0 keeps none.
  std::size_t cache_bytes = std::size_t{512} << 20;
};

struct AskOptions {
  RecordLimits limits{};
  MediaOptions media{};
  AnswerOptions answers{};
  // Null or a token that outlives the call.
  const CancelToken* cancel = nullptr;
  // Reuse what an earlier request with the same state or the same pictures left behind. Answers
  // are the same bits either way.
  bool use_cache = true;
  // Null, or where the time of each stage is counted: vision, embedding, linear, delta rule,
  // attention, elementwise, head.
  StageTimes* times = nullptr;
  // Null, or who is shown what the text layers compute; it outlives the call. Reuses nothing.
  const TextObserver* observer = nullptr;
  // Called on the caller's thread after each chunk.
  std::function<void(std::size_t done_tokens, std::size_t total_tokens)> progress{};
};

struct Response {
  std::string model;
  std::vector<std::vector<double>> probabilities;  // Per question, options in the request's order.
  Json answers;
  std::size_t input_tokens = 0;
  std::size_t reused_tokens = 0;  // Of those, not computed again.
  std::size_t dropped_state_tokens = 0;
  // Encoding includes decoding and preparing media; the vision encoder is a part of prefill.
  double encode_seconds = 0, prefill_seconds = 0, head_seconds = 0;
};

// Its `usage`: tokens, and what of them was reused or dropped, if any was.
Json usage_to_json(const Response& response);
// The body of a System One response (cli.md, `ask --json`).
Json response_to_json(const Response& response);

// A request as far as any thread can bring it: media decoded, text tokenized.
struct PreparedRequest {
  // Until their features are known; their pixels may take hundreds of megabytes.
  std::shared_ptr<const std::vector<PreparedMedia>> media;
  Record record;
  std::string media_digest;  // Of all media; empty without any.
  double seconds = 0;        // That preparing took.
};

class EngineRun;

// A model that is ready to answer. prepare() may be called from any thread at any time; of
// everything else, runs included, one call at a time.
class Engine {
 public:
  // Throws Error as Tokenizer and choose_backend do, and kUnsupported for kFast where it is not
  // offered.
  explicit Engine(Model model, const EngineOptions& options = {});

  // Throws Error: kInvalidArgument when the request does not fit the limits, kUnsupported when it
  // asks for what is not available, kCancelled, kCorruptData when results are not finite numbers.
  Response ask(const Request& request, const AskOptions& options = {});

  // The same in two parts, for callers who have several requests under way: what a request needs
  // before it computes, and a run that computes it step by step. What `options` points to must
  // outlive the run.
  PreparedRequest prepare(const Request& request, const AskOptions& options = {}) const;
  EngineRun start(PreparedRequest prepared, const AskOptions& options = {});
  // prepare() for a request with the media of an earlier one, which are not decoded again.
  PreparedRequest prepare(const Request& request,
                          std::shared_ptr<const std::vector<PreparedMedia>> media,
                          const AskOptions& options = {}) const;

  // Runs a request and returns its intermediate results whose names start with `name_prefix`.
  Trace trace(const Request& request, const AskOptions& options = {},
              const std::string& name_prefix = {});

  const Model& model() const { return model_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Backend& backend() const { return *backend_.backend; }
  // Why `auto` took that one; empty when it was asked for by name.
  const std::string& backend_reason() const { return backend_.reason; }
  Precision precision() const { return precision_; }
  std::size_t thread_count() const { return executor_.thread_count(); }
  const ResultCache& cache() const { return cache_; }

 private:
  friend class EngineRun;
  static constexpr char kEmbeddingsName[] = "model.language_model.embed_tokens.weight";

  Model model_;
  Executor executor_;
  Tokenizer tokenizer_;
  Precision precision_;
  ChosenBackend backend_;
  std::size_t chunk_tokens_;
  WeightMatrix embeddings_;
  std::vector<float> final_norm_;  // Multiplier, [hidden_size].
  DecisionHead head_;
  ResultCache cache_;
};

// A prepared request on its way through an engine, which must outlive it. It holds a sequence's
// state, so a caller who starts many pays for each.
class EngineRun {
 public:
  EngineRun(Engine& engine, PreparedRequest prepared, const AskOptions& options,
            TraceRecorder* trace = nullptr);
  EngineRun(EngineRun&&) noexcept;
  ~EngineRun();

  bool is_done() const;
  // How much is left to compute, in tokens of text; an estimate before the first step, which looks
  // for a known prefix. A picture's patches count too.
  std::size_t remaining_tokens() const;
  // Whether it has yet to compute what the cache would then have for this request: the same
  // beginning, up to the end of the state.
  bool is_reading_prefix_of(const PreparedRequest& other) const;
  // Computes the next pictures, the next chunk of tokens, or the head. Throws as Engine::ask does;
  // the run is then of no further use.
  void step();
  // When done: what was asked of it, once.
  Response response(const Request& request);
  const Decision& decision() const;
  const Record& record() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The prefill calls for a record, in order. They are cut at the end of the state as well: what
// comes before is then computed in the same pieces whatever is asked about it.
std::vector<TokenSpan> chunk_schedule(const Record& record, std::size_t chunk_tokens);

}  // namespace clefkit
