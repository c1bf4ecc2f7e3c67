#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/json.h"

namespace clefkit {

enum class QuestionType { kNoul, kChoice, kScore };

// The protocol's name: "noul", "choice" or "score".
std::string_view to_string(QuestionType type);

// One thing a question may be answered with.
struct Option {
  std::string id;
  // Any JSON but null. Absent when the request gives none or null; a noul's options then have the
  // release's default texts, unless an explicit null took them away.
  std::optional<Json> description;
  bool is_default_description = false;  // One of those texts, and not the caller's.
};

struct Question {
  std::string id;
  QuestionType type = QuestionType::kNoul;
  std::optional<Json> instructions;  // Any JSON but null and "": the id stands in for those.
  // In the request's order; noul: "true", "false"; score: "0", "1", … from low to high.
  std::vector<Option> options;
  std::vector<Json> legend;  // A score's criteria as given, one per option; else empty.
};

// A picture or a clip as given: what it may hold is media/'s to say.
struct MediaSource {
  Json value{};
  std::string place{};  // Of it, for messages: `images[0]`.

  bool operator==(const MediaSource&) const = default;
};

// A System One request whose questions are all well formed.
struct Request {
  // Of it among others, to stand before the place of whatever is wrong with it: `set.jsonl line 7`.
  // Empty where there is only one.
  std::string place;
  std::optional<std::string> model;
  Json state;
  std::string state_place = "state";  // Of it, for messages.
  std::vector<Question> questions;    // At least one, in the request's order, ids unique.
  std::vector<MediaSource> images, videos;
  std::optional<Json> media_kwargs;  // An object.
};

// The place of a question in errors: `questions.team`, `questions."a b"`; long ids are cut.
std::string question_place(std::string_view question_id);
// The same of anything else that questions' ids are the keys of: `expected.team`.
std::string question_place(std::string_view object, std::string_view question_id);

struct CountRange {
  std::size_t min = 1;
  std::size_t max = 255;
};

// The reference has no limits; a server dialect may set narrower ones than these.
struct RequestLimits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t values = 16'000'000;  // JSON values in all.
  std::size_t depth = 64;           // Of the whole request, so the state may be nested one less.
  std::optional<std::size_t> max_questions{};
  CountRange options{};  // Of a choice.
  CountRange levels{};   // Of a score.
};

// Whether the container at this path of a request (as in JsonLimits) is only shown to the model, or
// is nothing the protocol has: a repeated key in there has a meaning, its last value.
bool is_opaque_in_request(std::span<const std::string_view> path);

// How a request's JSON is to be parsed: a repeated key is refused in everything that has a meaning
// here (top level, questions, criteria, media), and takes its last value, as in Python, in what is
// only shown to the model (the state, instructions, descriptions) and in members nobody reads.
JsonLimits json_limits_of(const RequestLimits& limits);

// Reads a request from its JSON text. Members the protocol does not define are ignored. Throws
// Error(kInvalidArgument): for text that is not JSON with `where`, the name of its source;
// otherwise with the member's place, e.g. `questions.team.criteria`.
Request parse_request(std::string_view json, const std::string& where,
                      const RequestLimits& limits = {});

// One request a line; blank lines are passed over. `where` and the number of the line stand before
// an error and are the request's place. Throws Error(kInvalidArgument) when there is none.
std::vector<Request> parse_request_lines(std::string_view lines, const std::string& where);

// The same from parsed JSON, for callers that read members of their own first.
Request request_from_json(Json json, const std::string& where, const RequestLimits& limits = {});

}  // namespace clefkit
