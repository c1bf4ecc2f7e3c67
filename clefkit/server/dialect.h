#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "clefkit/base/json.h"
#include "clefkit/engine/engine.h"
#include "clefkit/engine/record.h"
#include "clefkit/http/message.h"
#include "clefkit/questions/answers.h"
#include "clefkit/questions/request.h"
#include "clefkit/server/refusal.h"

namespace clefkit::server {

// What is asked, in the terms that all dialects share.
struct Call {
  Request request{};
  AnswerOptions answers{};
  RecordLimits::Overflow overflow = RecordLimits::Overflow::kRefuse;
  std::string_view overflow_name{};  // The dialect's field for it, if it has one.
  // What the dialect remembers for its answer: names, order, the client's own ids.
  Json memo{};
};

// The model that answers.
struct ModelIdentity {
  std::string name;     // E.g. "clef-flash".
  std::string digest;   // SHA-256 of the manifest, or of a checkpoint's index and configuration.
  std::string version;  // Of clefkit.
  std::size_t max_tokens = 16384;
  bool has_vision = true;
  std::uint64_t size_bytes = 0;  // Of its files.
};

// Everything about one answer that goes into a body.
struct Answer {
  const Call& call;
  const Response& response;
  const ModelIdentity& model;
  std::string request_id;
  double queue_seconds = 0;
};

// The most that any protocol takes in one body, which is the transport's default limit too.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 20;

// One wire protocol: how its requests are read and its answers and errors are written. Tables of
// functions without state, so that protocols can be read side by side.
struct Dialect {
  std::string_view name;  // For metrics and logs.
  std::size_t max_body_bytes = kMaxBodyBytes;
  // Reads a call. `model` may be named by the path: the route's wildcards are `path_arguments`.
  // Throws Refusal or Error(kInvalidArgument).
  Call (*parse)(const http::Request& request, std::span<const std::string> path_arguments,
                const ModelIdentity& model);
  http::Response (*answer)(const Answer& answer);
  http::Response (*refuse)(const Refusal& refusal, std::string_view request_id);
};

extern const Dialect kSystemOne;        // TypeSafe, llama.cpp and Ollama: /v1/systemone
extern const Dialect kOpenRouter;       // /api/v1/systemone, /api/alpha/decisions
extern const Dialect kWorkersAi;        // /client/v4/accounts/*/ai/run/@cf/cloudflare/*
extern const Dialect kOpenAiDecisions;  // /v1/decisions
extern const Dialect kVercelGateway;    // /v4/ai/decision-model

}  // namespace clefkit::server
