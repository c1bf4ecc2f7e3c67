#include "clefkit/engine/record.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <numeric>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/utf8.h"
#include "clefkit/questions/canonical_json.h"

namespace clefkit {
namespace {

// The prompt of the release's code, to the letter: the model was trained on exactly these tokens.
constexpr std::string_view kPrefix =
    "<|im_start|>system\n"
    "Read the complete state and schema. Decide every field jointly. Each answer must be exactly "
    "one of that field's allowed options."
    "<|im_end|>\n<|im_start|>user\nSTATE:\n";
constexpr std::string_view kSchemaStart = "\n\nSCHEMA FIELDS:\n";
constexpr std::string_view kOptionsStart = "\nALLOWED OPTIONS:\n";
constexpr std::string_view kOptionEnd = "\n";
constexpr std::string_view kQuestionEnd = "END FIELD\n";
constexpr std::string_view kSuffix =
    "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:";

constexpr std::string_view kImagePad = "<|image_pad|>";
constexpr std::string_view kVideoPad = "<|video_pad|>";

// Patches along each side of what becomes one token.
constexpr std::size_t kMerge = 2;

// A stretch of the prompt under construction. Spans count from its own start.
class Piecewise {
 public:
  Piecewise(const Tokenizer& tokenizer, bool has_media, const CancelToken* cancel)
      : tokenizer_(tokenizer), cancel_(cancel) {
    // Without media a placeholder in a text is a text like any other.
    if (has_media) pads_ = {tokenizer.token_id(kImagePad), tokenizer.token_id(kVideoPad)};
  }

  std::vector<std::int32_t>& ids() { return ids_; }

  TokenSpan add_ids(std::span<const std::int32_t> ids) {
    const std::size_t begin = ids_.size();
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    return {begin, ids_.size()};
  }

  TokenSpan add_text(std::string_view text) { return add_ids(tokenizer_.encode(text, cancel_)); }

  // Text that is the request's own; `where` is its place there.
  TokenSpan add_request_text(std::string_view text, const std::string& where) {
    // Parsed requests are UTF-8; those put together from a command line need not be.
    if (const std::size_t valid = utf8_valid_prefix(text); valid != text.size()) {
      throw_error(ErrorCode::kInvalidArgument, where,
                  "found the byte 0x{:02x} at {}, expected valid UTF-8",
                  static_cast<unsigned char>(text[valid]), valid);
    }
    const TokenSpan span = add_text(text);
    for (std::size_t i = span.begin; i < span.end; ++i) {
      // The model could not tell it from the tokens that stand for the request's own media.
      if (std::find(pads_.begin(), pads_.end(), ids_[i]) != pads_.end()) {
        throw_error(ErrorCode::kInvalidArgument, where,
                    "holds the text {}, expected none in a request with images or videos",
                    ids_[i] == pads_[0] ? kImagePad : kVideoPad);
      }
    }
    return span;
  }

 private:
  const Tokenizer& tokenizer_;
  const CancelToken* cancel_;
  std::array<std::optional<std::int32_t>, 2> pads_;
  std::vector<std::int32_t> ids_;
};

std::int32_t required_token(const Tokenizer& tokenizer, std::string_view text) {
  const std::optional<std::int32_t> id = tokenizer.token_id(text);
  if (!id) {
    throw_error(ErrorCode::kCorruptData, "tokenizer.json", "no token {}, expected one for media",
                text);
  }
  return *id;
}

// One decimal of the exact value, ties to even, as C's printf.
std::string timestamp_text(double seconds) {
  std::array<char, 400> buffer;
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), seconds,
                                     std::chars_format::fixed, 1);
  return fmt::format("<{} seconds>", std::string_view(buffer.data(), written.ptr));
}

// Adds the media segment and returns its runs. The release tokenizes it as one string; every cut
// made here is at a special token, where tokenizing cuts anyway.
std::vector<MediaRun> add_media(Piecewise& prompt, const Tokenizer& tokenizer,
                                std::span<const MediaItem> media) {
  if (media.empty()) return {};
  const std::int32_t vision_start = required_token(tokenizer, "<|vision_start|>");
  const std::int32_t vision_end = required_token(tokenizer, "<|vision_end|>");
  const std::int32_t image_pad = required_token(tokenizer, kImagePad);
  const std::int32_t video_pad = required_token(tokenizer, kVideoPad);
  std::vector<MediaRun> runs;
  const auto add_run = [&](const MediaItem& item, std::int32_t pad) {
    MediaRun run;
    run.rows = item.grid_h / kMerge;
    run.columns = item.grid_w / kMerge;
    prompt.add_ids({&vision_start, 1});
    run.span = prompt.add_ids(std::vector<std::int32_t>(run.rows * run.columns, pad));
    prompt.add_ids({&vision_end, 1});
    runs.push_back(run);
  };
  for (const MediaItem& item : media) {
    if (item.kind == MediaItem::Kind::kImage) {
      add_run(item, image_pad);
      continue;
    }
    assert(item.timestamps.size() == item.grid_t);
    prompt.add_ids({&vision_start, 1});
    for (const double seconds : item.timestamps) {
      prompt.add_text(timestamp_text(seconds));
      add_run(item, video_pad);
    }
    prompt.add_ids({&vision_end, 1});
  }
  prompt.add_text("\n");
  return runs;
}

std::vector<std::size_t> encoding_order(const Question& question) {
  std::vector<std::size_t> order(question.options.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (question.type == QuestionType::kChoice) {
    // Bytes of UTF-8 compare as code points do.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return question.options[a].id < question.options[b].id;
    });
  }
  return order;
}

std::string option_text(const Option& option) {
  Json json = Json::object({{"option_id", option.id}});
  if (option.description) json.set("description", *option.description);
  return canonical_json(json);
}

RecordQuestion add_question(Piecewise& prompt, const Question& question, std::size_t number) {
  const std::string where = question_place(question.id);
  RecordQuestion result;
  result.id = question.id;
  result.type = question.type;
  prompt.add_request_text(fmt::format("\nFIELD {}\nID: {}\nTYPE: {}\nINSTRUCTION: ", number,
                                      question.id, to_string(question.type)),
                          where);
  result.span = prompt.add_request_text(
      question.instructions ? render_value(*question.instructions) : question.id,
      where + ".instructions");
  // The head takes the mean of a span's tokens, which nothing does not have.
  if (result.span.size() == 0) {
    throw_error(ErrorCode::kInvalidArgument, where + ".instructions",
                "no token, expected at least one");
  }
  prompt.add_text(kOptionsStart);
  for (const std::size_t index : encoding_order(question)) {
    const Option& option = question.options[index];
    prompt.add_text(fmt::format("OPTION {}: ", result.options.size() + 1));
    const TokenSpan span = prompt.add_request_text(option_text(option), where + ".criteria");
    prompt.add_text(kOptionEnd);
    result.options.push_back({option.id, span, index});
  }
  prompt.add_text(kQuestionEnd);
  return result;
}

void shift(TokenSpan& span, std::size_t tokens) {
  span.begin += tokens;
  span.end += tokens;
}

// How many of the state's tokens may stay beside `fixed` others.
std::size_t kept_state_tokens(std::size_t state, std::size_t fixed, const RecordLimits& limits,
                              const std::string& where) {
  const std::size_t room = limits.max_tokens - fixed;
  const std::size_t most = std::min(room, limits.max_state_tokens.value_or(room));
  if (state <= most) return state;
  if (limits.overflow == RecordLimits::Overflow::kTruncate) return most;
  const std::string reason =
      most < room ? "the limit of the state's own"
                  : fmt::format("{} less {} of prompt and questions", limits.max_tokens, fixed);
  const std::string other_way =
      limits.overflow_name.empty()
          ? ""
          : fmt::format(", or let its end be cut off ({})", limits.overflow_name);
  throw_error(ErrorCode::kTooLarge, where,
              "{} tokens, expected at most {} ({}): shorten it by {}{}", state, most, reason,
              state - most, other_way);
}

Json to_json(const TokenSpan& span) {
  return Json::array({std::uint64_t{span.begin}, std::uint64_t{span.end}});
}

Json to_json(std::span<const std::int32_t> values) {
  Json array = Json::array();
  for (const std::int32_t value : values) array.push_back(value);
  return array;
}

}  // namespace

Record encode_record(const Tokenizer& tokenizer, const Request& request,
                     std::span<const MediaItem> media, const RecordLimits& limits,
                     const CancelToken* cancel) {
  assert(std::is_partitioned(media.begin(), media.end(), [](const MediaItem& item) {
    return item.kind == MediaItem::Kind::kImage;
  }));
  Record record;
  Piecewise prompt(tokenizer, !media.empty(), cancel);
  prompt.add_text(kPrefix);
  record.media_runs = add_media(prompt, tokenizer, media);

  // The schema comes after the state, but its length says how much of the state may stay.
  Piecewise schema(tokenizer, !media.empty(), cancel);
  schema.add_text(kSchemaStart);
  for (const Question& question : request.questions) {
    record.questions.push_back(add_question(schema, question, record.questions.size() + 1));
  }
  schema.add_text(kSuffix);

  const std::size_t fixed = prompt.ids().size() + schema.ids().size();
  if (fixed > limits.max_tokens) {
    throw_error(ErrorCode::kTooLarge, "questions",
                "schema requires {} tokens before state; maximum is {}", fixed, limits.max_tokens);
  }
  record.state = prompt.add_request_text(render_value(request.state), request.state_place);
  record.state_tokens = record.state.size();
  const std::size_t kept =
      kept_state_tokens(record.state_tokens, fixed, limits, request.state_place);
  record.dropped_state_tokens = record.state_tokens - kept;
  record.state.end = record.state.begin + kept;
  prompt.ids().resize(record.state.end);

  prompt.add_ids(schema.ids());
  for (RecordQuestion& question : record.questions) {
    shift(question.span, record.state.end);
    for (RecordOption& option : question.options) shift(option.span, record.state.end);
  }
  record.input_ids = std::move(prompt.ids());
  Positions positions = mrope_positions(record.input_ids.size(), record.media_runs);
  record.temporal = std::move(positions.temporal);
  record.height = std::move(positions.height);
  record.width = std::move(positions.width);
  return record;
}

Json record_to_json(const Record& record) {
  Json questions = Json::array();
  for (const RecordQuestion& question : record.questions) {
    Json options = Json::array();
    for (const RecordOption& option : question.options) {
      options.push_back(Json::object({{"id", option.id}, {"span", to_json(option.span)}}));
    }
    questions.push_back(Json::object({{"id", question.id},
                                      {"type", to_string(question.type)},
                                      {"span", to_json(question.span)},
                                      {"options", std::move(options)}}));
  }
  Json json = Json::object({{"input_ids", to_json(record.input_ids)},
                            {"questions", std::move(questions)},
                            {"state_tokens", std::uint64_t{record.state_tokens}},
                            {"dropped_state_tokens", std::uint64_t{record.dropped_state_tokens}}});
  if (record.has_media()) {
    json.set("position_ids", Json::array({to_json(record.temporal), to_json(record.height),
                                          to_json(record.width)}));
  }
  return json;
}

}  // namespace clefkit
