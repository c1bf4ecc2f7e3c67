#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/engine/positions.h"
#include "clefkit/questions/request.h"
#include "clefkit/text/tokenizer.h"

namespace clefkit {

struct RecordOption {
  std::string id;
  TokenSpan span;                 // Of the option's JSON.
  std::size_t request_index = 0;  // Its place among the request's options.
};

struct RecordQuestion {
  std::string id;
  QuestionType type = QuestionType::kNoul;
  TokenSpan span;                     // Of the instructions, or of the id in their place.
  std::vector<RecordOption> options;  // As the model reads them: a choice's are sorted by id.
};

// What encoding needs to know of a decoded image or video.
struct MediaItem {
  enum class Kind { kImage, kVideo };
  Kind kind = Kind::kImage;
  // In patches; height and width are even, four patches make a token. An image's grid_t is 1, a
  // video's its number of frame pairs.
  std::size_t grid_t = 1, grid_h = 0, grid_w = 0;
  // A video's, in seconds: per frame pair, the mean of its two frames' times.
  std::vector<double> timestamps{};
};

struct RecordLimits {
  enum class Overflow { kRefuse, kTruncate };
  std::size_t max_tokens = 16384;
  std::optional<std::size_t> max_state_tokens{};
  // What becomes of a state that does not fit. Questions and media are never cut.
  Overflow overflow = Overflow::kRefuse;
  // For messages: by what name a caller allows kTruncate, e.g. "--truncate"; empty: by none.
  std::string overflow_name{};
};

// A request as the model reads it (model.md 6): system prompt, media, state, the questions one
// after the other, suffix. All spans lie in input_ids and none but the state's is empty.
struct Record {
  std::vector<std::int32_t> input_ids;
  std::vector<RecordQuestion> questions;  // In the request's order.
  TokenSpan state;                        // What is kept of it.
  std::size_t state_tokens = 0;           // The state's before it was cut.
  std::size_t dropped_state_tokens = 0;   // Of those, cut off its end.
  // Where vision features go, in this order: per image one run, then per video one per frame pair.
  std::vector<MediaRun> media_runs;
  // mRoPE positions, [input_ids] each; 0, 1, 2, … in a record without media.
  std::vector<std::int32_t> temporal, height, width;

  bool has_media() const { return !media_runs.empty(); }
};

// Encodes a request with its media, images before videos. Every piece of the prompt is tokenized on
// its own, as the model was trained on. Throws Error: kTooLarge when the request does not fit the
// limits; kInvalidArgument when its text holds a media placeholder next to real media;
// kCorruptData when the tokenizer lacks the tokens that media need; kCancelled.
Record encode_record(const Tokenizer& tokenizer, const Request& request,
                     std::span<const MediaItem> media, const RecordLimits& limits,
                     const CancelToken* cancel = nullptr);

// The output of `clefkit encode --json` (cli.md).
Json record_to_json(const Record& record);

}  // namespace clefkit
