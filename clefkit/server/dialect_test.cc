#include "clefkit/server/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "clefkit/base/error.h"

namespace clefkit::server {
namespace {

using Kind = Refusal::Kind;

constexpr std::array<const Dialect*, 5> kDialects{&kSystemOne, &kOpenRouter, &kWorkersAi,
                                                  &kOpenAiDecisions, &kVercelGateway};
const ModelIdentity kModel{.name = "clef-flash", .digest = "0123abcd", .version = "9.9.9"};
constexpr char kRequestId[] = "11111111-2222-3333-4444-555555555555";

const Dialect& dialect_named(std::string_view name) {
  for (const Dialect* dialect : kDialects) {
    if (dialect->name == name) return *dialect;
  }
  throw std::runtime_error("no dialect " + std::string(name));
}

// What a call came to.
struct Outcome {
  std::optional<Call> call;
  std::optional<Refusal> refusal;
};

Outcome outcome_of(const Dialect& dialect, const http::Request& request,
                   std::span<const std::string> path_arguments) {
  try {
    return {dialect.parse(request, path_arguments, kModel), std::nullopt};
  } catch (const Refusal& refusal) {
    return {std::nullopt, refusal};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return {std::nullopt, refusal_of(error)};
  }
}

Json parsed(const http::Response& response) {
  EXPECT_EQ(response.content_type, "application/json");
  return parse_json(response.body, "response", {.depth = 100});
}

std::string header_of(const http::Response& response, std::string_view name) {
  return std::string(http::find_header(response.headers, name).value_or(""));
}

// Equal but for the last bits of numbers that are no integers; members in the same order. With
// kSubset an object may have members that are not expected.
enum class Match { kExact, kSubset };
void expect_json(const Json& expected, const Json& actual, Match match, const std::string& place) {
  if (expected.is_object() && actual.is_object()) {
    if (match == Match::kExact) {
      std::vector<std::string> names, expected_names;
      for (const auto& [name, value] : actual.members()) names.push_back(name);
      for (const auto& [name, value] : expected.members()) expected_names.push_back(name);
      EXPECT_EQ(names, expected_names) << place;
    }
    for (const auto& [name, value] : expected.members()) {
      const Json* const member = actual.find(name);
      ASSERT_NE(member, nullptr) << place << "." << name;
      expect_json(value, *member, match, place + "." + name);
    }
  } else if (expected.is_array() && actual.is_array()) {
    ASSERT_EQ(expected.items().size(), actual.items().size()) << place;
    for (std::size_t i = 0; i < expected.items().size(); ++i) {
      expect_json(expected.items()[i], actual.items()[i], match, fmt::format("{}[{}]", place, i));
    }
  } else if (expected.is_number() && actual.is_number() && !expected.number().is_integer() &&
             !actual.number().is_integer()) {
    EXPECT_NEAR(*expected.as_double(), *actual.as_double(), 1e-12) << place;
  } else {
    EXPECT_EQ(to_string(expected), to_string(actual)) << place;
  }
}

std::string text_at(const Json& json, std::string_view name) {
  const Json* const value = json.find(name);
  return value != nullptr ? value->string() : "";
}

std::size_t count_at(const Json& json, std::string_view name) {
  const Json* const value = json.find(name);
  return value != nullptr ? static_cast<std::size_t>(*value->as_uint64()) : 0;
}

http::Request request_of(const Json& test) {
  http::Request request;
  if (const Json* headers = test.find("headers")) {
    for (const auto& [name, value] : headers->members()) {
      request.headers.emplace_back(name, value.string());
    }
  }
  const Json* const body = test.find("body");
  request.body = body != nullptr ? to_string(*body) : text_at(test, "body_text");
  return request;
}

// What a case says that the request should become: {state, images, videos, ids, options}.
void expect_call(const Json& expected, const Call& call) {
  const auto values_of = [](const std::vector<MediaSource>& media) {
    Json values = Json::array();
    for (const MediaSource& item : media) values.push_back(item.value);
    return values;
  };
  Json actual = Json::object({{"state", call.request.state},
                              {"images", values_of(call.request.images)},
                              {"videos", values_of(call.request.videos)}});
  Json ids = Json::array(), instructions = Json::array(), options = Json::array();
  for (const Question& question : call.request.questions) {
    ids.push_back(question.id);
    instructions.push_back(question.instructions.value_or(Json()));
    Json of_question = Json::object();
    for (const Option& option : question.options) {
      of_question.set(option.id, option.description.value_or(Json()));
    }
    options.push_back(std::move(of_question));
  }
  actual.set("ids", std::move(ids)).set("instructions", std::move(instructions));
  actual.set("options", std::move(options));
  actual.set("truncates", call.overflow == RecordLimits::Overflow::kTruncate);
  for (const auto& [name, value] : expected.members()) {
    const Json* const member = actual.find(name);
    ASSERT_NE(member, nullptr) << name;
    EXPECT_EQ(to_string(value), to_string(*member)) << name;
  }
}

void expect_answer(const Json& test, const Dialect& dialect, const Call& call) {
  Response response;
  response.input_tokens = count_at(test, "input_tokens");
  response.reused_tokens = count_at(test, "reused_tokens");
  response.dropped_state_tokens = count_at(test, "dropped_state_tokens");
  response.encode_seconds = 0.25;
  response.prefill_seconds = 1.5;
  response.head_seconds = 0.125;
  for (const Json& row : test.find("probabilities")->items()) {
    std::vector<double>& numbers = response.probabilities.emplace_back();
    for (const Json& number : row.items()) numbers.push_back(*number.as_double());
  }
  ASSERT_EQ(response.probabilities.size(), call.request.questions.size());
  response.answers = answers_to_json(call.request.questions, response.probabilities, call.answers);
  const http::Response answer = dialect.answer({.call = call,
                                                .response = response,
                                                .model = kModel,
                                                .request_id = kRequestId,
                                                .queue_seconds = 0.5});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(header_of(answer, "x-request-id"), kRequestId);
  expect_json(*test.find("response"), parsed(answer), Match::kExact, "response");
}

void run_case(const Json& test) {
  const Dialect& dialect = dialect_named(text_at(test, "dialect"));
  std::vector<std::string> path_arguments;
  if (const Json* arguments = test.find("path_arguments")) {
    for (const Json& argument : arguments->items()) path_arguments.push_back(argument.string());
  }
  const Outcome outcome = outcome_of(dialect, request_of(test), path_arguments);
  if (const Json* expected = test.find("refusal")) {
    ASSERT_TRUE(outcome.refusal) << "answered";
    const http::Response response = dialect.refuse(*outcome.refusal, kRequestId);
    EXPECT_EQ(response.status, static_cast<int>(count_at(*expected, "status"))) << response.body;
    expect_json(*expected->find("body"), parsed(response), Match::kSubset, "body");
    return;
  }
  ASSERT_TRUE(outcome.call) << outcome.refusal->message();
  if (const Json* expected = test.find("call")) expect_call(*expected, *outcome.call);
  if (test.find("response") != nullptr) expect_answer(test, dialect, *outcome.call);
}

// One file holds the cases of one subject, by name.
TEST(Dialects, AnswerAndRefuseAsTheCasesSay) {
  const std::filesystem::path folder =
      std::filesystem::path(CLEFKIT_SOURCE_DIR) / "tests/server/cases";
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const Json cases = parse_json(text, entry.path().string(), {.depth = 200});
    for (const auto& [name, test] : cases.members()) {
      SCOPED_TRACE(entry.path().filename().string() + ": " + name);
      run_case(test);
      ++count;
    }
  }
  EXPECT_GE(count, 150u);
}

TEST(Dialects, RefuseBodiesThatNoneOfThemTakes) {
  const std::array<std::string, 2> path_arguments{"account", "clef-flash"};
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("null"), std::string("[]"), std::string("1"),
        std::string("\"x\""), std::string("{}"), std::string("{\"questions\":1}"),
        std::string("{\"state\":\"\",\"input\":\"\",\"stateParts\":[],\"questions\":{}}"),
        std::string("{\"state\":\"\",\"input\":\"\",\"stateParts\":[],\"questions\":[]}"),
        std::string("{\"state\":\"\",\"input\":\"\",\"stateParts\":[],\"questions\":{\"a\":1}}"),
        std::string("{\"state\":\"\",\"input\":\"\",\"stateParts\":[],\"questions\":[1]}"),
        std::string("{\"model\":1,\"state\":\"\",\"input\":\"\"}"),
        std::string("{\"a\":1,\"a\":2}"), std::string("\xff\xfe"), "{\"state\":" + deep + "}"}) {
    http::Request request;
    request.body = body;
    for (const Dialect* dialect : kDialects) {
      SCOPED_TRACE(std::string(dialect->name) + ": " + body);
      const Outcome outcome = outcome_of(*dialect, request, path_arguments);
      ASSERT_TRUE(outcome.refusal);
      const http::Response response = dialect->refuse(*outcome.refusal, kRequestId);
      EXPECT_GE(response.status, 400);
      EXPECT_LT(response.status, 500);
      EXPECT_TRUE(parsed(response).is_object());
    }
  }
}

TEST(Dialects, RefuseBodiesBeyondTheirLimit) {
  for (const Dialect* dialect : kDialects) {
    http::Request request;
    request.body.assign(dialect->max_body_bytes + 1, ' ');
    const Outcome outcome = outcome_of(*dialect, request, {});
    ASSERT_TRUE(outcome.refusal);
    EXPECT_EQ(outcome.refusal->kind, Kind::kBodyTooLarge);
    EXPECT_EQ(dialect->refuse(*outcome.refusal, kRequestId).status, 413);
  }
}

TEST(Dialects, SayWhenToComeBack) {
  Refusal busy(Kind::kBusy, "", "32 requests are waiting");
  busy.retry_after_seconds = 0.3;
  for (const Dialect* dialect : kDialects) {
    const http::Response response = dialect->refuse(busy, kRequestId);
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(header_of(response, "Retry-After"), "1");
    EXPECT_EQ(header_of(response, "retry-after-ms"), "300");
  }
  busy.retry_after_seconds = 2.25;
  EXPECT_EQ(header_of(kSystemOne.refuse(busy, kRequestId), "Retry-After"), "3");
  EXPECT_EQ(header_of(kSystemOne.refuse(busy, kRequestId), "retry-after-ms"), "2250");
}

TEST(Dialects, NameTheRequestInTheirOwnHeaders) {
  const Refusal refusal(Kind::kUnauthorized, "", "no key");
  for (const Dialect* dialect : kDialects) {
    const http::Response response = dialect->refuse(refusal, kRequestId);
    EXPECT_EQ(response.status, 401);
    EXPECT_EQ(header_of(response, "x-request-id"), kRequestId);
    EXPECT_EQ(header_of(response, "retry-after"), "");
  }
  EXPECT_EQ(header_of(kSystemOne.refuse(refusal, kRequestId), "x-typesafe-request-id"), kRequestId);
  EXPECT_EQ(header_of(kWorkersAi.refuse(refusal, kRequestId), "cf-ai-req-id"), kRequestId);
  EXPECT_EQ(header_of(kWorkersAi.refuse(refusal, kRequestId), "cache-control"), "no-store");

  const Call call;
  const Response response;
  const Answer nothing{
      .call = call, .response = response, .model = kModel, .request_id = kRequestId};
  EXPECT_EQ(header_of(kSystemOne.answer(nothing), "x-typesafe-request-id"), kRequestId);
  EXPECT_EQ(header_of(kWorkersAi.answer(nothing), "cf-ai-req-id"), kRequestId);
  EXPECT_EQ(header_of(kWorkersAi.answer(nothing), "cache-control"), "no-store");
}

TEST(Dialects, KeepTheReasonOfOurOwnFailuresToTheLog) {
  const Refusal refusal(Kind::kInternal, "/srv/secret.safetensors", "broken");
  for (const Dialect* dialect : kDialects) {
    const http::Response response = dialect->refuse(refusal, kRequestId);
    EXPECT_GE(response.status, 500);
    EXPECT_THAT(response.body, testing::Not(testing::HasSubstr("secret")));
    EXPECT_THAT(response.body, testing::Not(testing::HasSubstr("broken")));
  }
}

struct StatusRow {
  Kind kind;
  // System One, OpenRouter, Workers AI, OpenAI, Vercel: api.md 1.4, 3.3, 2.4, 3.4, 3.5.
  std::array<int, 5> statuses;
};

TEST(Dialects, HaveTheirOwnStatuses) {
  for (const StatusRow& row : {StatusRow{Kind::kNotJson, {422, 400, 400, 400, 400}},
                               StatusRow{Kind::kInvalid, {422, 400, 422, 400, 400}},
                               StatusRow{Kind::kMediaType, {415, 415, 415, 415, 415}},
                               StatusRow{Kind::kUnusedAsset, {400, 400, 422, 400, 400}},
                               StatusRow{Kind::kUnknownModel, {400, 400, 400, 404, 404}},
                               StatusRow{Kind::kTooManyTokens, {413, 413, 413, 413, 413}},
                               StatusRow{Kind::kBodyTooLarge, {413, 413, 413, 413, 413}},
                               StatusRow{Kind::kUnauthorized, {401, 401, 401, 401, 401}},
                               StatusRow{Kind::kForbidden, {403, 403, 403, 403, 403}},
                               StatusRow{Kind::kNotFound, {404, 404, 400, 404, 404}},
                               StatusRow{Kind::kMethodNotAllowed, {405, 405, 405, 405, 405}},
                               StatusRow{Kind::kUnsupported, {422, 400, 422, 400, 400}},
                               StatusRow{Kind::kBusy, {429, 429, 429, 429, 429}},
                               StatusRow{Kind::kStopping, {503, 503, 503, 503, 503}},
                               StatusRow{Kind::kDeadline, {504, 524, 408, 504, 504}},
                               StatusRow{Kind::kInternal, {500, 500, 529, 500, 500}}}) {
    for (std::size_t i = 0; i < kDialects.size(); ++i) {
      EXPECT_EQ(kDialects[i]->refuse(Refusal(row.kind, "", "text"), kRequestId).status,
                row.statuses[i])
          << kDialects[i]->name << " " << static_cast<int>(row.kind);
    }
  }
}

std::string repeated(std::size_t count, std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += text;
  }
  return out;
}

// The message of the refusal; empty when there is none.
std::string refusal_text(const Dialect& dialect, std::string body) {
  http::Request request;
  request.body = std::move(body);
  const Outcome outcome = outcome_of(dialect, request, {});
  return outcome.refusal ? outcome.refusal->message() : "";
}

TEST(OpenAiDecisions, LimitsWhatAJsonPartHolds) {
  const auto refusal_of_data = [](const std::string& data) {
    return refusal_text(kOpenAiDecisions,
                        R"({"input":[{"role":"user","content":[{"type":"input_json","data":)" +
                            data +
                            R"(}]}],"questions":[{"type":"predicate","instructions":"?"}]})");
  };
  // The object and its list are values too; {"d":""} are eight bytes.
  const auto of_values = [](std::size_t count) {
    return "{\"d\":[" + repeated(count - 2, "0") + "]}";
  };
  const auto of_bytes = [](std::size_t count) {
    return "{\"d\":\"" + std::string(count - 8, 'x') + "\"}";
  };
  EXPECT_EQ(refusal_of_data(of_values(10'000)), "");
  EXPECT_EQ(refusal_of_data(of_values(10'001)),
            "input[0].content[0].data: 10001 values, expected at most 10000");
  EXPECT_EQ(refusal_of_data(of_bytes(262'144)), "");
  EXPECT_EQ(refusal_of_data(of_bytes(262'145)),
            "input[0].content[0].data: 262145 bytes, expected at most 262144");
}

TEST(OpenAiDecisions, TakesUpTo400Questions) {
  const auto refusal_of_count = [](std::size_t count) {
    return refusal_text(kOpenAiDecisions,
                        R"({"input":"t","questions":[)" +
                            repeated(count, R"({"type":"predicate","instructions":"?"})") + "]}");
  };
  EXPECT_EQ(refusal_of_count(400), "");
  EXPECT_EQ(refusal_of_count(401), "questions: 401 entries, expected 1 to 400");
}

TEST(WorkersAi, LimitsTheBytesOfImages) {
  const auto refusal_of_images = [](std::size_t count, std::size_t base64_bytes) {
    const std::string image = "\"data:image/png;base64," + std::string(base64_bytes, 'A') + "\"";
    return refusal_text(kWorkersAi,
                        R"({"state":"s","questions":{"q":{"type":"noul","instructions":"?"}},)"
                        R"("images":[)" +
                            repeated(count, image) + "]}");
  };
  // 4 MiB are 1,398,101 groups of three bytes and one byte, which two more characters hold.
  const std::size_t whole = 1'398'101 * 4 + 2;
  EXPECT_EQ(refusal_of_images(2, whole), "");
  EXPECT_EQ(refusal_of_images(1, whole + 1), "images[0]: 4194305 bytes, expected at most 4194304");
  // 2,796,204 bytes each.
  EXPECT_EQ(refusal_of_images(3, 932'068 * 4),
            "images: 8388612 bytes in all, expected at most 8388608");
}

// Headers and wildcards hold bytes of any kind; bodies are JSON all the same.
TEST(Dialects, RepeatNoBrokenText) {
  const std::array<std::string, 2> path_arguments{"a", "x\xff\"" + std::string(1000, 'y')};
  http::Request request;
  request.headers.emplace_back("AI-Model-Id", path_arguments[1]);
  request.body = "{}";
  for (const Dialect* dialect : {&kWorkersAi, &kVercelGateway}) {
    const Outcome outcome = outcome_of(*dialect, request, path_arguments);
    ASSERT_TRUE(outcome.refusal);
    EXPECT_EQ(outcome.refusal->kind, Kind::kUnknownModel);
    const http::Response response = dialect->refuse(*outcome.refusal, kRequestId);
    EXPECT_TRUE(parsed(response).is_object());
    EXPECT_LT(response.body.size(), 400u);
  }
}

}  // namespace
}  // namespace clefkit::server
