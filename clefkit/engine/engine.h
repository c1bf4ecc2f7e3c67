#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clefkit/backend/backend.h"
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
  std::string backend = "auto";
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

// The body of a System One response (cli.md, `ask --json`).
Json response_to_json(const Response& response);

// A model that is ready to answer. One call at a time.
class Engine {
 public:
  // Throws Error as Tokenizer and make_backend do.
  explicit Engine(Model model, const EngineOptions& options = {});

  // Throws Error: kInvalidArgument when the request does not fit the limits, kUnsupported when it
  // asks for what is not available, kCancelled, kCorruptData when results are not finite numbers.
  Response ask(const Request& request, const AskOptions& options = {});

  // Runs a request and returns its intermediate results whose names start with `name_prefix`.
  Trace trace(const Request& request, const AskOptions& options = {},
              const std::string& name_prefix = {});

  const Model& model() const { return model_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Backend& backend() const { return *backend_; }
  Precision precision() const { return precision_; }
  std::size_t thread_count() const { return executor_.thread_count(); }

 private:
  struct Run {
    Decision decision;
    std::size_t reused_tokens = 0;
    double prefill_seconds = 0, head_seconds = 0;
  };

  // Vision features of a picture or clip, [tokens, hidden_size]; shared with the cache.
  using Features = std::shared_ptr<const FloatMatrix>;

  // A request that is ready to run.
  struct Input {
    std::vector<PreparedMedia> media;
    Record record;
    std::string media_digest;  // Of all media; empty without any.
  };

  Input encode(const Request& request, const AskOptions& options) const;
  // Gives up the input's media once their features are known.
  Run run(Input& input, const AskOptions& options, TraceRecorder* trace);
  // Of all media, computed or known.
  std::vector<Features> encode_media(const ComputeContext& context, const Input& input,
                                     bool use_cache, TraceRecorder* trace);
  // Starts a sequence where the cache has the record's prefix, else empty.
  std::unique_ptr<SequenceState> start_sequence(const Input& input, HeadInput& head_input);
  // Remembers the prefix, of which all tokens were just read.
  void keep_prefix(const Input& input, const SequenceState& sequence, const HeadInput& head_input);
  // The input of the text layers for the chunk's tokens.
  void embed(const Record& record, std::span<const Features> features, const TokenSpan& chunk,
             MatrixView<float> hidden) const;

  Model model_;
  Executor executor_;
  Tokenizer tokenizer_;
  Precision precision_;
  std::unique_ptr<Backend> backend_;
  std::size_t chunk_tokens_;
  WeightMatrix embeddings_;
  std::vector<float> final_norm_;  // Multiplier, [hidden_size].
  DecisionHead head_;
  ResultCache cache_;
};

// The prefill calls for a record, in order. They are cut at the end of the state as well: what
// comes before is then computed in the same pieces whatever is asked about it.
std::vector<TokenSpan> chunk_schedule(const Record& record, std::size_t chunk_tokens);

}  // namespace clefkit
