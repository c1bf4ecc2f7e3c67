#include "clefkit/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"
#include "clefkit/engine/golden_case.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model micro() { return open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro"); }

Request text_request(const std::string& json) { return parse_request(json, "test"); }

// With a state of that many tokens: every digit is one.
Request ticket(std::size_t state_tokens = 12) {
  std::string state;
  for (std::size_t i = 0; i < state_tokens; ++i) state += static_cast<char>('0' + i * i % 7);
  return text_request(R"({"model": "m", "state": ")" + state + R"(", "questions": {
    "refund": {"type": "noul", "instructions": "Money back?"},
    "team": {"type": "choice", "criteria": {"sales": null, "billing": "Payments"}}}})");
}

std::vector<double> all_probabilities(const Response& response) {
  std::vector<double> all;
  for (const auto& row : response.probabilities) all.insert(all.end(), row.begin(), row.end());
  return all;
}

double largest_difference(const Response& a, const Response& b) {
  const std::vector<double> x = all_probabilities(a), y = all_probabilities(b);
  EXPECT_EQ(x.size(), y.size());
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

Record record_of(std::size_t tokens, TokenSpan state) {
  Record record;
  record.input_ids.resize(tokens);
  record.state = state;
  return record;
}

TEST(ChunkSchedule, CutsAtTheEndOfTheState) {
  EXPECT_THAT(chunk_schedule(record_of(100, {10, 40}), 512),
              ElementsAre(TokenSpan{0, 40}, TokenSpan{40, 100}));
  EXPECT_THAT(
      chunk_schedule(record_of(100, {10, 70}), 32),
      ElementsAre(TokenSpan{0, 32}, TokenSpan{32, 64}, TokenSpan{64, 70}, TokenSpan{70, 100}));
}

TEST(ChunkSchedule, MakesNoEmptyChunk) {
  EXPECT_THAT(chunk_schedule(record_of(64, {10, 32}), 32),
              ElementsAre(TokenSpan{0, 32}, TokenSpan{32, 64}));
  EXPECT_THAT(chunk_schedule(record_of(3, {0, 0}), 2),
              ElementsAre(TokenSpan{0, 2}, TokenSpan{2, 3}));
}

TEST(Engine, GivesProbabilitiesInTheRequestsOrder) {
  Engine engine(micro(), {.threads = 1});
  const Response response = engine.ask(ticket());
  ASSERT_EQ(response.probabilities.size(), 2u);
  for (const auto& row : response.probabilities) {
    ASSERT_EQ(row.size(), 2u);
    EXPECT_NEAR(row[0] + row[1], 1.0, 1e-14);
  }
  // The model reads "billing" before "sales"; asking for them the other way round changes nothing.
  const Request turned = text_request(R"({"state": ")" + ticket().state.string() + R"(",
    "questions": {"refund": {"type": "noul", "instructions": "Money back?"},
    "team": {"type": "choice", "criteria": {"billing": "Payments", "sales": null}}}})");
  const Response other = engine.ask(turned);
  EXPECT_EQ(other.probabilities[1][0], response.probabilities[1][1]);
  EXPECT_EQ(other.probabilities[1][1], response.probabilities[1][0]);
}

TEST(Engine, NamesTheModelThatWasAskedOrItsOwn) {
  Engine engine(micro(), {.threads = 1});
  EXPECT_EQ(engine.ask(ticket()).model, "m");
  Request unnamed = ticket();
  unnamed.model.reset();
  EXPECT_EQ(engine.ask(unnamed).model, "micro");
}

TEST(Engine, WritesASystemOneResponse) {
  Response response;
  response.model = "m";
  response.answers = Json::object({{"q", Json::object({{"type", "noul"}, {"noul", 0.5}})}});
  response.input_tokens = 12;
  EXPECT_EQ(to_string(response_to_json(response)),
            R"({"model":"m","answers":{"q":{"type":"noul","noul":0.5}},)"
            R"("usage":{"input_tokens":12,"output_tokens":0}})");
  response.dropped_state_tokens = 3;
  response.reused_tokens = 4;
  EXPECT_THAT(to_string(response_to_json(response)),
              HasSubstr(R"("output_tokens":0,"x_reused_tokens":4,"x_dropped_state_tokens":3})"));
}

TEST(Engine, AnswersTheSameForEveryChunkSize) {
  const Request request = ticket(100);
  Engine whole(micro(), {.threads = 2, .chunk_tokens = 4096});
  const Response expected = whole.ask(request);
  ASSERT_GT(expected.input_tokens, 129u);
  for (std::size_t chunk = 1; chunk <= 129; chunk += chunk < 8 || chunk > 59 ? 1 : 13) {
    Engine engine(micro(), {.threads = 2, .chunk_tokens = chunk});
    EXPECT_LE(largest_difference(engine.ask(request), expected), 1e-5) << "chunks of " << chunk;
  }
}

TEST(Engine, AnswersTheSameForEveryLengthAroundAChunksEdge) {
  Engine whole(micro(), {.threads = 2, .chunk_tokens = 4096});
  Engine chunked(micro(), {.threads = 2, .chunk_tokens = 64});
  std::vector<std::size_t> remainders(64);
  for (std::size_t state_tokens = 0; state_tokens < 66; ++state_tokens) {
    const Response response = chunked.ask(ticket(state_tokens));
    ++remainders[response.input_tokens % 64];
    EXPECT_LE(largest_difference(response, whole.ask(ticket(state_tokens))), 1e-5)
        << response.input_tokens << " tokens";
  }
  EXPECT_THAT(remainders, ::testing::Each(::testing::Ge(1u)));
}

TEST(Engine, ReadsARecordOfExactlyTheLimit) {
  Engine engine(micro(), {.threads = 2});
  AskOptions options;
  options.limits.max_tokens = 700;
  options.limits.overflow = RecordLimits::Overflow::kTruncate;
  const Response response = engine.ask(ticket(2000), options);
  EXPECT_EQ(response.input_tokens, 700u);
  EXPECT_GT(response.dropped_state_tokens, 0u);
  options.limits.overflow = RecordLimits::Overflow::kRefuse;
  EXPECT_EQ(error_of([&] { engine.ask(ticket(2000), options); }).code(), ErrorCode::kTooLarge);
}

TEST(Engine, GivesTheSameBitsForEveryNumberOfThreads) {
  Engine one(micro(), {.threads = 1}), two(micro(), {.threads = 2});
  EXPECT_EQ(all_probabilities(one.ask(ticket(300))), all_probabilities(two.ask(ticket(300))));
}

TEST(Engine, GivesTheSameBitsEveryTime) {
  Engine engine(micro(), {.threads = 2});
  const Response first = engine.ask(ticket(300));
  engine.ask(ticket(10));
  EXPECT_EQ(all_probabilities(engine.ask(ticket(300))), all_probabilities(first));
}

// What was asked does not reach back into the state: a cache of the state can then be exact.
TEST(Engine, ComputesTheStateToTheSameBitsWhateverIsAsked) {
  Engine engine(micro(), {.threads = 2, .chunk_tokens = 48});
  const Request request = ticket(60);
  Request other = request;
  other.questions.pop_back();
  const std::string name = "layers.3.output";
  const Trace a = engine.trace(request, {}, name), b = engine.trace(other, {}, name);
  const auto& x = std::get<std::vector<float>>(a.at(name).values);
  const auto& y = std::get<std::vector<float>>(b.at(name).values);
  const Record record = encode_record(engine.tokenizer(), request, {}, {});
  const std::size_t state_values = record.state.end * engine.model().config.text.hidden_size;
  EXPECT_TRUE(
      std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(state_values), y.begin()));
}

TEST(Engine, ReusesTheStateOfAnEarlierRequestToTheSameBits) {
  Engine engine(micro());
  const Response first = engine.ask(ticket(700));
  EXPECT_EQ(first.reused_tokens, 0u);
  // Another question about the same state.
  Request other = ticket(700);
  other.questions.erase(other.questions.begin());
  const Response reused = engine.ask(other);
  AskOptions fresh;
  fresh.use_cache = false;
  const Response computed = engine.ask(other, fresh);
  EXPECT_GT(reused.reused_tokens, 700u);
  EXPECT_EQ(computed.reused_tokens, 0u);
  EXPECT_EQ(all_probabilities(reused), all_probabilities(computed));
  const Json body = response_to_json(reused);
  EXPECT_EQ(body.find("usage")->find("x_reused_tokens")->as_uint64(), reused.reused_tokens);
}

TEST(Engine, KeepsNoPrefixWithoutABudget) {
  Engine engine(micro(), {.cache_bytes = 0});
  (void)engine.ask(ticket());
  EXPECT_EQ(engine.ask(ticket()).reused_tokens, 0u);
}

TEST(Engine, CountsTheTimeOfItsStages) {
  Engine engine(micro());
  StageTimes times;
  AskOptions options;
  options.times = &times;
  (void)engine.ask(ticket(), options);
  for (const char* stage :
       {"embedding", "linear", "delta rule", "attention", "elementwise", "head"}) {
    EXPECT_GT(times.of(stage), 0.0) << stage;
  }
}

TEST(Engine, TracesOnlyWhatIsAskedFor) {
  Engine engine(micro(), {.threads = 1});
  const Trace trace = engine.trace(ticket(), {}, "head.");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : trace) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("head.evidence", "head.fields", "head.logits", "head.memory",
                                 "head.probabilities"));
  EXPECT_THAT(trace.at("head.logits").shape, ElementsAre(4u));
  EXPECT_THAT(trace.at("head.fields").shape, ElementsAre(2u, 32u));
}

// On a backend that leaves the processor free the head reads a chunk while the next one is
// computed; a trace does one after the other.
TEST(Engine, ReadsBehindABackendWithTheSameBits) {
  Engine engine(micro(), {.threads = 2, .backend = "simulator"});
  ASSERT_TRUE(engine.backend().leaves_processor_free());
  AskOptions options;
  const Trace trace = engine.trace(ticket(150), {}, "head.probabilities");
  for (const bool use_cache : {false, true}) {
    options.use_cache = use_cache;
    const Response response = engine.ask(ticket(150), options);
    std::vector<float> ours;
    for (const double value : all_probabilities(response))
      ours.push_back(static_cast<float>(value));
    std::vector<float> theirs = std::get<std::vector<float>>(trace.at("head.probabilities").values);
    // The one in the request's order, the other in the record's.
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    EXPECT_EQ(ours, theirs);
  }
}

TEST(Engine, ReportsProgressUpToTheWhole) {
  Engine engine(micro(), {.threads = 1, .chunk_tokens = 50});
  std::vector<std::size_t> done;
  AskOptions options;
  options.progress = [&](std::size_t tokens, std::size_t) { done.push_back(tokens); };
  const Response response = engine.ask(ticket(), options);
  EXPECT_GT(done.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), response.input_tokens);
}

TEST(Engine, StopsWhenCancelledAndAnswersAgain) {
  Engine engine(micro(), {.threads = 2, .chunk_tokens = 50});
  const Response expected = engine.ask(ticket());
  CancelToken token;
  AskOptions options;
  options.cancel = &token;
  std::size_t chunks = 0;
  options.progress = [&](std::size_t, std::size_t) {
    ++chunks;
    token.cancel();
  };
  EXPECT_EQ(error_of([&] { engine.ask(ticket(), options); }).code(), ErrorCode::kCancelled);
  EXPECT_EQ(chunks, 1u);
  EXPECT_EQ(all_probabilities(engine.ask(ticket())), all_probabilities(expected));
}

TEST(Engine, RefusesAnUnknownBackend) {
  EXPECT_EQ(error_of([] { Engine(micro(), {.backend = "gpu"}); }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(Engine, RefusesTokensThatTheModelHasNoRowFor) {
  Model model = micro();
  model.config.text.vocab_size = 700;  // <|im_start|>, in every record, is 701.
  for (const char* name : {"model.language_model.embed_tokens.weight", "lm_head.weight"}) {
    auto& view = std::get<TensorView>(model.weights.at(name));
    view.shape[0] = 700;
    view.bytes = view.bytes.first(700 * 64 * sizeof(BFloat16));
  }
  Engine engine(std::move(model), {.threads = 1});
  const Error error = error_of([&] { engine.ask(ticket()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
  EXPECT_EQ(std::string(error.what()), "tokenizer.json: token id 701, expected below 700");
}

// A model with one element overwritten; `bytes` holds that tensor.
Model damaged(const std::string& tensor, std::size_t element, float value,
              std::vector<std::uint8_t>& bytes) {
  Model model = micro();
  auto& view = std::get<TensorView>(model.weights.at(tensor));
  bytes.assign(view.bytes.begin(), view.bytes.end());
  const BFloat16 stored = to_bfloat16(value);
  std::memcpy(bytes.data() + element * sizeof stored, &stored, sizeof stored);
  view.bytes = bytes;
  return model;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Error error_with_damaged(const std::string& tensor, std::size_t element, float value) {
  std::vector<std::uint8_t> bytes;
  return error_of([&] {
    Engine engine(damaged(tensor, element, value, bytes), {.threads = 1});
    engine.ask(ticket());
  });
}

TEST(Engine, NamesTheWeightThatIsNotFinite) {
  struct Case {
    std::string tensor;
    std::size_t element;
    std::string place;
  };
  // Token 701, <|im_start|>, is in every record; of lm_head the options' tokens are read.
  Engine engine(micro(), {.threads = 1});
  const Record record = encode_record(engine.tokenizer(), ticket(), {}, {});
  const auto option_token = static_cast<std::size_t>(
      record.input_ids[record.questions.front().options.front().span.begin]);
  const std::vector<Case> cases{
      {"model.language_model.embed_tokens.weight", 701 * 64 + 5, "[701, 5]"},
      {"model.language_model.layers.2.mlp.up_proj.weight", 64 * 3 + 1, "[3, 1]"},
      {"model.language_model.norm.weight", 63, "[63]"},
      {"memory_projection.weight", 0, "[0, 0]"},
      {"evidence_layers.1.attention.in_proj_weight", 32 * 95, "[95, 0]"},
      {"layers.0.multihead_attn.in_proj_bias", 95, "[95]"},
      {"residual_scorer.3.bias", 0, "[0]"},
      {"joint_logit_scale", 0, "[]"},
      {"type_embedding.weight", 0, "[0, 0]"},
      {"lm_head.weight", option_token * 64, fmt::format("[{}, 0]", option_token)},
  };
  for (const Case& bad : cases) {
    const Error error = error_with_damaged(bad.tensor, bad.element, kNan);
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData) << bad.tensor;
    EXPECT_EQ(error.where(), bad.tensor);
    EXPECT_THAT(error.message(), HasSubstr("element " + bad.place + " is nan")) << bad.tensor;
  }
  EXPECT_THAT(error_with_damaged("model.language_model.norm.weight", 0, kInfinity).message(),
              HasSubstr("is inf"));
}

TEST(Engine, DoesNotMindDamageThatIsNotRead) {
  std::vector<std::uint8_t> bytes;
  // Row 760 of the embeddings belongs to no token.
  Engine engine(damaged("model.language_model.embed_tokens.weight", 760 * 64, kNan, bytes),
                {.threads = 1});
  Engine whole(micro(), {.threads = 1});
  EXPECT_EQ(all_probabilities(engine.ask(ticket())), all_probabilities(whole.ask(ticket())));
}

// What a caller with several requests under way does: turns, in an order of its own.
TEST(EngineRun, GivesTheSameBitsWhenRunsTakeTurns) {
  const Request requests[] = {ticket(300), ticket(1200), ticket(40)};
  Engine alone(micro(), {.threads = 1, .cache_bytes = 0});
  // A cache that keeps one prefix makes runs lose each other's.
  for (const std::size_t cache_bytes :
       {std::size_t{0}, std::size_t{1} << 20, std::size_t{1} << 28}) {
    Engine engine(micro(), {.threads = 2, .cache_bytes = cache_bytes});
    for (int round = 0; round < 2; ++round) {
      std::vector<EngineRun> runs;
      for (const Request& request : requests) runs.push_back(engine.start(engine.prepare(request)));
      for (bool all_done = false; !all_done;) {
        all_done = true;
        for (EngineRun& run : runs) {
          if (run.is_done()) continue;
          const std::size_t before = run.remaining_tokens();
          run.step();
          EXPECT_LE(run.remaining_tokens(), before);
          all_done = false;
        }
      }
      for (std::size_t i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(runs[i].remaining_tokens(), 0u);
        EXPECT_EQ(runs[i].response(requests[i]).probabilities,
                  alone.ask(requests[i]).probabilities);
      }
    }
  }
}

TEST(EngineRun, ACancelledRunLeavesOthersAlone) {
  Engine engine(micro(), {.threads = 1});
  Engine alone(micro(), {.threads = 1, .cache_bytes = 0});
  CancelToken cancel;
  AskOptions options;
  options.cancel = &cancel;
  EngineRun cancelled = engine.start(engine.prepare(ticket(1200), options), options);
  EngineRun other = engine.start(engine.prepare(ticket(1200)));
  cancelled.step();
  other.step();
  cancel.cancel();
  EXPECT_EQ(error_of([&] { cancelled.step(); }).code(), ErrorCode::kCancelled);
  while (!other.is_done()) other.step();
  EXPECT_EQ(other.response(ticket(1200)).probabilities, alone.ask(ticket(1200)).probabilities);
}

TEST(Engine, PreparesOnSeveralThreadsWhileItComputes) {
  Engine engine(micro(), {.threads = 1});
  const Record expected = engine.prepare(ticket(500)).record;
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) {
        equal += engine.prepare(ticket(500)).record.input_ids == expected.input_ids ? 1 : 0;
      }
    });
  }
  engine.ask(ticket(100));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 60);
}

}  // namespace
}  // namespace clefkit
