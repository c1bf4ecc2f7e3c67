#include "clefkit/server/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <future>

#include "clefkit/model/checkpoint.h"

namespace clefkit::server {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeExchange final : public http::Exchange {
 public:
  void respond(http::Response response) override { promise_.set_value(std::move(response)); }
  void on_disconnect(std::function<void()> gone) override { gone_ = std::move(gone); }

  http::Response response() { return promise_.get_future().get(); }
  void disconnect() { gone_(); }

 private:
  std::promise<http::Response> promise_;
  std::function<void()> gone_;
};

constexpr char kBody[] =
    R"({"state": "My card was charged twice.", "questions": {
       "refund": {"type": "noul", "instructions": "Money back?"},
       "team": {"type": "choice", "criteria": {"sales": null, "billing": "Payments"}}}})";

http::Request post(std::string path, std::string body, http::Headers headers = {}) {
  headers.emplace_back("Host", "localhost:8080");
  return {.method = "POST",
          .path = std::move(path),
          .query = {},
          .headers = std::move(headers),
          .body = std::move(body)};
}
http::Request get(std::string path, http::Headers headers = {}) {
  http::Request request = post(std::move(path), "", std::move(headers));
  request.method = "GET";
  return request;
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest()
      : engine_(open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro"),
                {.threads = 1, .chunk_tokens = 64}),
        log_(RequestLog::Format::kOff) {}

  Service& start(ServiceOptions options = {}) {
    options.model = {"clef-flash", "digest", "version"};
    service_.emplace(engine_, std::move(options), log_);
    return *service_;
  }
  http::Response ask(http::Request request) {
    auto exchange = std::make_shared<FakeExchange>();
    service_->handle(std::move(request), exchange);
    return exchange->response();
  }

  Engine engine_;
  RequestLog log_;
  std::optional<Service> service_;
};

Json json_of(const http::Response& response) { return parse_json(response.body, "body", {}); }

TEST_F(ServiceTest, AnswersWithTheEnginesNumbers) {
  start();
  const http::Response response = ask(post("/v1/systemone", kBody));
  ASSERT_EQ(response.status, 200) << response.body;
  const Json body = json_of(response);
  Engine alone(open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro"),
               {.threads = 1, .chunk_tokens = 64});
  EXPECT_EQ(*body.find("answers"), alone.ask(parse_request(kBody, "test")).answers);
  EXPECT_EQ(*body.find("model"), Json("clef-flash"));
  EXPECT_TRUE(http::find_header(response.headers, "x-request-id"));
}

TEST_F(ServiceTest, TellsHowManyTokensWereReused) {
  start();
  ask(post("/v1/systemone", kBody));
  const Json body = json_of(ask(post("/v1/systemone", kBody)));
  EXPECT_GT(body.find("usage")->find("x_reused_tokens")->as_uint64().value(), 10u);
  EXPECT_THAT(ask(get("/metrics")).body,
              HasSubstr("clefkit_requests_total{dialect=\"system_one\",status=\"200\"} 2"));
}

TEST_F(ServiceTest, IsolatedAnswersDependOnNoIdAndNoNeighbour) {
  start({.isolate = true});
  const auto noul = [&](const std::string& questions) {
    const Json body =
        json_of(ask(post("/v1/systemone", R"({"state": "x", "questions": {)" + questions + "}}")));
    return *body.find("answers")->members().front().second.find("noul");
  };
  const std::string question = R"({"type": "noul", "instructions": "Money back?"})";
  const Json alone = noul("\"a\": " + question);
  EXPECT_EQ(noul("\"another id\": " + question), alone);
  EXPECT_EQ(
      noul("\"a\": " + question + R"(, "b": {"type": "noul", "instructions": "Is it late?"})"),
      alone);
  const Json body = json_of(ask(post("/v1/systemone", kBody)));
  EXPECT_EQ(body.find("answers")->members().size(), 2u);
  EXPECT_EQ(body.find("answers")->members()[1].first, "team");
}

// Each question leaves the state other room; said is what the one with the least has lost.
TEST_F(ServiceTest, TellsTheMostThatAnIsolatedQuestionsStateLost) {
  ServiceOptions options{.isolate = true};
  options.limits.max_tokens = 400;
  start(std::move(options));
  const auto dropped = [&](const std::string& questions) {
    std::string state;
    for (int i = 0; i < 300; ++i) state += fmt::format("{} ", i);
    const Json body = json_of(
        ask(post("/v1/systemone",
                 fmt::format(R"({{"x_truncate": "state_tail", "state": {}, "questions": {{{}}}}})",
                             to_string(Json(state)), questions))));
    return *body.find("usage")->find("x_dropped_state_tokens")->as_uint64();
  };
  const std::string brief = R"("a": {"type": "noul", "instructions": "a"})";
  const std::string wordy = R"("b": {"type": "noul", "instructions": "a b c d e f g"})";
  EXPECT_LT(dropped(brief), dropped(wordy));
  EXPECT_EQ(dropped(brief + "," + wordy), dropped(wordy));
  EXPECT_EQ(dropped(wordy + "," + brief), dropped(wordy));
}

TEST_F(ServiceTest, RefusesInTheProtocolOfThePath) {
  start();
  EXPECT_EQ(ask(post("/v1/systemone", "{")).status, 422);
  EXPECT_EQ(ask(post("/v1/systemone", R"({"questions": {}})")).status, 422);
  const http::Response nothing = ask(get("/v1/nothing"));
  EXPECT_EQ(nothing.status, 404);
  EXPECT_TRUE(json_of(nothing).find("error")->is_string());
  const http::Response wrong_method = ask(get("/v1/systemone"));
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(http::find_header(wrong_method.headers, "allow"), "POST");
  const http::Response workers = ask(get("/client/v4/nothing"));
  EXPECT_TRUE(json_of(workers).find("errors")->is_array());
  const http::Response large = service_->refuse(get("/v1/decisions"), 413, "too large");
  EXPECT_EQ(large.status, 413);
  EXPECT_TRUE(json_of(large).find("error")->is_object());
}

TEST_F(ServiceTest, AsksForAKeyEverywhereButOnOpenPages) {
  start({.keys = {"secret"}});
  const http::Response refused = ask(post("/v1/systemone", kBody));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(http::find_header(refused.headers, "www-authenticate"), "Bearer");
  EXPECT_EQ(ask(get("/v1/models")).status, 401);
  EXPECT_EQ(ask(get("/metrics")).status, 401);
  EXPECT_EQ(ask(get("/no/such/path")).status, 401);
  EXPECT_EQ(ask(post("/v1/systemone", kBody, {{"Authorization", "Bearer wrong"}})).status, 401);
  EXPECT_EQ(ask(post("/v1/systemone", kBody, {{"Authorization", "Bearer secret"}})).status, 200);
  EXPECT_EQ(ask(get("/healthz")).status, 200);
  EXPECT_EQ(ask(get("/")).status, 200);
}

// By its header alone: what handle() would refuse once the body is there.
TEST_F(ServiceTest, AdmitsNoBodyOfWhoMayNotAsk) {
  start({.keys = {"secret"}, .allowed_hosts = {"localhost"}});
  const auto status_of = [&](const http::Request& request) {
    const std::optional<http::Response> refusal = service_->admit(request);
    if (!refusal) return 200;
    EXPECT_TRUE(http::find_header(refusal->headers, "x-request-id"));
    EXPECT_EQ(ask(request).status, refusal->status);
    return refusal->status;
  };
  const std::pair<std::string, std::string> key{"Authorization", "Bearer secret"};
  EXPECT_EQ(status_of(post("/v1/systemone", "", {key})), 200);
  EXPECT_EQ(status_of(post("/v1/systemone", "")), 401);
  EXPECT_EQ(status_of(post("/v1/systemone", "", {{"Authorization", "Bearer other"}})), 401);
  EXPECT_EQ(status_of(post("/nowhere", "", {key})), 404);
  EXPECT_EQ(status_of(post("/nowhere", "")), 401);
  EXPECT_EQ(status_of(post("/healthz", "", {key})), 405);
  http::Request foreign = post("/v1/systemone", "", {key});
  foreign.headers.back().second = "evil.example";
  EXPECT_EQ(status_of(foreign), 403);
  EXPECT_THAT(ask(get("/metrics", {key})).body,
              HasSubstr("clefkit_requests_total{dialect=\"system_one\",status=\"401\"} 4"));
}

TEST_F(ServiceTest, CountsWaitingOfWhatWaited) {
  start();
  ask(get("/healthz"));
  ask(post("/v1/systemone", "{"));
  ask(post("/v1/systemone", kBody));
  EXPECT_THAT(ask(get("/metrics")).body, HasSubstr("clefkit_queue_seconds_count 2\n"));
}

TEST_F(ServiceTest, AnswersWhatItGivesUp) {
  start();
  auto exchange = std::make_shared<FakeExchange>();
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "one more word ";
  service_->handle(post("/v1/systemone",
                        R"({"state": ")" + text + R"(", "questions": {"q": {"type": "noul"}}})"),
                   exchange);
  service_->begin_stop();
  service_->give_up();
  EXPECT_EQ(exchange->response().status, 503);
}

TEST_F(ServiceTest, AnswersUnderItsOwnNamesOnly) {
  start({.allowed_hosts = {"localhost", "::1"}});
  EXPECT_EQ(ask(get("/healthz")).status, 200);
  http::Request request = get("/v1/models");
  request.headers = {{"Host", "[::1]:8080"}};
  EXPECT_EQ(ask(request).status, 200);
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "",
                           "localhost:x", "localhost:80:80", "[::1", "[::1]8080", "::1", "[]"}) {
    request.headers = {{"Host", host}};
    EXPECT_EQ(ask(request).status, 403) << host;
  }
  request.headers = {};
  EXPECT_EQ(ask(request).status, 403);
  request.headers = {{"Host", "LocalHost:8080"}};
  EXPECT_EQ(ask(request).status, 200);
}

// A page of another site can have a browser send a request, if not read the answer.
TEST_F(ServiceTest, TakesNoRequestsFromOtherSitesPages) {
  start({.allowed_hosts = {"localhost", "::1"}});
  for (const char* origin : {"http://localhost:8080", "http://[::1]:99", "https://LOCALHOST"}) {
    EXPECT_EQ(ask(post("/v1/systemone", kBody, {{"Origin", origin}})).status, 200) << origin;
  }
  for (const char* origin : {"http://evil.example", "null", "", "://", "http://localhost.evil"}) {
    EXPECT_EQ(ask(post("/v1/systemone", kBody, {{"Origin", origin}})).status, 403) << origin;
  }
}

TEST_F(ServiceTest, RefusesMoreThanItsQueueHoldsAndSaysWhenToComeBack) {
  start({.scheduler = {.max_jobs = 1}});
  std::string state(9'000, 'x');
  auto long_one = std::make_shared<FakeExchange>();
  service_->handle(post("/v1/systemone",
                        R"({"state": ")" + state + R"(", "questions": {"q": {"type": "noul"}}})"),
                   long_one);
  const http::Response busy = ask(post("/v1/systemone", kBody));
  EXPECT_EQ(busy.status, 429);
  EXPECT_TRUE(http::find_header(busy.headers, "retry-after"));
  EXPECT_TRUE(http::find_header(busy.headers, "retry-after-ms"));
  EXPECT_EQ(ask(get("/healthz")).status, 200);
  EXPECT_EQ(ask(get("/readyz")).status, 503);
  long_one->disconnect();
  EXPECT_NE(long_one->response().status, 200);
  EXPECT_EQ(ask(get("/readyz")).status, 200);
  EXPECT_EQ(ask(post("/v1/systemone", kBody)).status, 200);  // Its place is free at once.
}

// Whatever the protocol calls the state, and only where it can be cut.
TEST_F(ServiceTest, SaysWhatIsTooLongInTheProtocolsWords) {
  ServiceOptions options;
  options.limits.max_tokens = 400;
  start(std::move(options));
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("{} ", i);
  const auto refused = [&](const char* path, const std::string& body) {
    const http::Response response = ask(post(path, fmt::format(fmt::runtime(body), text)));
    EXPECT_GE(response.status, 400);
    return response.body;
  };
  const std::string system_one =
      refused("/v1/systemone", R"({{"state": "{}", "questions": {{"q": {{"type": "noul"}}}}}})");
  EXPECT_THAT(system_one, HasSubstr("state: "));
  EXPECT_THAT(system_one, HasSubstr("x_truncate"));
  const std::string decisions = refused("/v1/decisions",
                                        R"({{"model": "clef-flash", "input": "{}",
           "questions": [{{"type": "predicate", "instructions": "Late?"}}]}})");
  EXPECT_THAT(decisions, HasSubstr("input: "));
  EXPECT_THAT(decisions, Not(HasSubstr("truncate")));
  const std::string gateway = refused("/v4/ai/decision-model",
                                      R"({{"stateParts": [{{"type": "text", "text": "{}"}}],
           "questions": {{"q": {{"type": "boolean", "instructions": "Late?"}}}}}})");
  EXPECT_THAT(gateway, HasSubstr("stateParts: "));
}

TEST_F(ServiceTest, KnowsOnlyTheModelItServes) {
  start();
  EXPECT_EQ(ask(post("/api/show", R"({"model": "clef-flash:latest"})")).status, 200);
  EXPECT_EQ(ask(post("/api/show", R"({"name": "clef-flash"})")).status, 200);
  const http::Response unknown = ask(post("/api/show", R"({"model": "llama"})"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_TRUE(json_of(unknown).find("error")->is_string());
  EXPECT_EQ(ask(post("/api/show", "{}")).status, 400);
  EXPECT_EQ(ask(get("/v1/models/cloudflare/clef-flash")).status, 200);
  EXPECT_EQ(ask(get("/v1/models/gpt")).status, 404);
}

TEST_F(ServiceTest, KeepsTheCallersDeadline) {
  start();
  const std::string state(9'000, 'x');
  const std::string body = R"({"state": ")" + state + R"(", "questions": {"q": {"type": "noul"}}})";
  EXPECT_EQ(ask(post("/v1/systemone", body, {{"X-Deadline-Ms", "30"}})).status, 504);
  EXPECT_EQ(ask(post("/v1/systemone", kBody, {{"X-Deadline-Ms", "60000"}})).status, 200);
  EXPECT_EQ(ask(post("/v1/systemone", kBody, {{"X-Deadline-Ms", "soon"}})).status, 422);
}

TEST_F(ServiceTest, TakesNothingNewWhenItStops) {
  start();
  EXPECT_EQ(ask(get("/readyz")).status, 200);
  service_->begin_stop();
  EXPECT_EQ(ask(get("/readyz")).status, 503);
  EXPECT_EQ(ask(get("/healthz")).status, 200);
  const http::Response refused = ask(post("/v1/systemone", kBody));
  EXPECT_GE(refused.status, 500);
}

TEST_F(ServiceTest, ReadsCompressedBodies) {
  start();
  std::string frame(ZSTD_compressBound(sizeof(kBody)), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), kBody, sizeof(kBody) - 1, 1));
  const auto ask_coded = [&](const char* coding, std::string body) {
    return ask(post("/v1/systemone", std::move(body), {{"Content-Encoding", coding}}));
  };
  const http::Response compressed = ask_coded("zstd", frame);
  ASSERT_EQ(compressed.status, 200) << compressed.body;
  EXPECT_EQ(*json_of(compressed).find("answers"),
            *json_of(ask(post("/v1/systemone", kBody))).find("answers"));

  EXPECT_EQ(ask_coded("zstd", kBody).status, 422);
  EXPECT_EQ(ask(post("/v1/systemone", frame,
                     {{"Content-Encoding", "zstd"}, {"content-encoding", "gzip"}}))
                .status,
            415);
  const http::Response unknown = ask_coded("gzip", kBody);
  EXPECT_EQ(unknown.status, 415);
  EXPECT_EQ(http::find_header(unknown.headers, "accept-encoding"), "zstd");

  const std::string bomb(kSystemOne.max_body_bytes + 1, ' ');
  std::string bomb_frame(ZSTD_compressBound(bomb.size()), '\0');
  bomb_frame.resize(
      ZSTD_compress(bomb_frame.data(), bomb_frame.size(), bomb.data(), bomb.size(), 1));
  EXPECT_EQ(ask_coded("zstd", bomb_frame).status, 413);
}

}  // namespace
}  // namespace clefkit::server
