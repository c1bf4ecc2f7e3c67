#include "clefkit/engine/record.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"

namespace clefkit {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const std::string kGolden = CLEFKIT_SOURCE_DIR "/tests/golden/";

Json read_json(const std::string& path) {
  return parse_json(read_file(path, 1 << 20), path, {.duplicates = DuplicateKeys::kLastWins});
}

const std::string& micro_json() {
  static const std::string json = read_file(kGolden + "checkpoints/micro/tokenizer.json", 1 << 20);
  return json;
}

const Tokenizer& micro() {
  static const Tokenizer tokenizer(micro_json(), "tokenizer.json");
  return tokenizer;
}

MediaItem image(std::size_t grid_h, std::size_t grid_w) {
  return {.grid_h = grid_h, .grid_w = grid_w};
}

MediaItem video(std::size_t grid_h, std::size_t grid_w, std::vector<double> timestamps) {
  return {.kind = MediaItem::Kind::kVideo,
          .grid_t = timestamps.size(),
          .grid_h = grid_h,
          .grid_w = grid_w,
          .timestamps = std::move(timestamps)};
}

// What the release's preprocessing makes of the files that the cases name. The first clip shows
// frames 0, 3, 5, 8 at 6 frames a second.
std::vector<MediaItem> media_of(const std::string& name) {
  const MediaItem wide = image(14, 20);
  const MediaItem scene = image(22, 30);
  const MediaItem ramp = image(16, 16);
  const MediaItem clip = video(4, 6, {0.25, (5 + 8) / 12.0});
  const MediaItem odd = video(4, 4, {0.25, 1.25, 2.25, 3.0});
  static const std::map<std::string, std::vector<MediaItem>> kMedia{
      {"image_alpha", {image(20, 14)}},
      {"image_ane", {scene}},
      {"image_ane_big", {image(28, 36)}},
      {"image_banner", {image(4, 80)}},
      {"image_edges", {image(14, 22)}},
      {"image_exif", {image(14, 22)}},
      {"image_gray", {wide}},
      {"image_jpeg", {scene}},
      {"image_kwargs", {image(10, 14)}},
      {"image_palette", {wide}},
      {"image_ramp", {ramp}},
      {"image_webp", {image(20, 14)}},
      {"image_wide", {wide}},
      {"images_three", {wide, scene, ramp}},
      {"mixed", {wide, clip, odd}},
      {"video_ane", {clip}},
      {"video_ane_big", {video(12, 18, {0.25, 1.5})}},
      {"video_clip", {clip}},
      {"video_odd", {odd}},
  };
  const auto found = kMedia.find(name);
  return found == kMedia.end() ? std::vector<MediaItem>{} : found->second;
}

RecordLimits limits_of(const Json& golden, const Json& encode) {
  RecordLimits limits;
  if (const Json* max_tokens = golden.find("max_tokens")) {
    limits.max_tokens = *max_tokens->as_uint64();
  }
  if (encode.find("dropped_state_tokens")->as_uint64() != 0) {
    limits.overflow = RecordLimits::Overflow::kTruncate;
  }
  return limits;
}

// The reference's members in the order of ours.
Json in_our_order(const Json& reference) {
  Json questions = Json::array();
  for (const Json& question : reference.find("questions")->items()) {
    Json ordered = Json::object();
    for (const char* key : {"id", "type", "span", "options"}) ordered.set(key, *question.find(key));
    questions.push_back(std::move(ordered));
  }
  return questions;
}

void expect_record(const Record& record, const Json& reference, const std::string& name) {
  const Json json = record_to_json(record);
  EXPECT_EQ(to_string(*json.find("input_ids")), to_string(*reference.find("input_ids"))) << name;
  EXPECT_EQ(to_string(*json.find("questions")), to_string(in_our_order(reference))) << name;
  EXPECT_EQ(*json.find("dropped_state_tokens"), *reference.find("dropped_state_tokens")) << name;
  const Json* positions = reference.find("position_ids");
  ASSERT_EQ(json.find("position_ids") != nullptr, positions != nullptr) << name;
  if (positions != nullptr) {
    EXPECT_EQ(to_string(*json.find("position_ids")), to_string(*positions)) << name;
  }
}

TEST(Record, EqualsTheReferenceWithTheReleasesTokenizer) {
  const std::string json = read_file(CLEFKIT_RELEASE_TOKENIZER, 64 << 20);
  const Tokenizer pattern_a(json, "tokenizer.json", Pretokenizer::kPatternA);
  const Tokenizer pattern_b(json, "tokenizer.json", Pretokenizer::kPatternB);
  const Json cases = read_json(kGolden + "encode/cases.json");
  ASSERT_EQ(cases.items().size(), 24U);
  for (const Json& golden : cases.items()) {
    const std::string& name = golden.find("name")->string();
    const Request request = request_from_json(*golden.find("request"), name);
    const Json& a = *golden.find("encode");
    const Json* b = golden.find("encode_pattern_b");
    const Record record = encode_record(pattern_a, request, {}, limits_of(golden, a));
    expect_record(record, a, name);
    expect_record(encode_record(pattern_b, request, {}, limits_of(golden, a)),
                  b == nullptr ? a : *b, name + " with pattern B");
    // The state lies between the 36 tokens of the prefix and "\n\nSCHEMA FIELDS:\n".
    EXPECT_EQ(record.state.begin, 36U) << name;
    const auto after_state = record.input_ids.begin() + static_cast<long>(record.state.end);
    EXPECT_THAT(std::vector(after_state, after_state + 7),
                ElementsAre(271, 3423, 34651, 426, 32349, 25, 198))
        << name;
    EXPECT_EQ(record.state_tokens, record.state.size() + record.dropped_state_tokens) << name;
  }
}

TEST(Record, EqualsTheReferenceWithTheMicroTokenizer) {
  std::size_t count = 0;
  std::size_t media_count = 0;
  for (const std::string checkpoint : {"micro", "tied"}) {
    const std::string folder = kGolden + "cases/" + checkpoint;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".json") continue;
      const Json golden = read_json(entry.path());
      const std::string& name = golden.find("name")->string();
      const Request request = request_from_json(*golden.find("request"), name);
      const std::vector<MediaItem> media = media_of(name);
      EXPECT_EQ(request.images.size() + request.videos.size(), media.size()) << name;
      const Json& encode = *golden.find("encode");
      expect_record(encode_record(micro(), request, media, limits_of(golden, encode)), encode,
                    checkpoint + "/" + name);
      ++count;
      media_count += media.empty() ? 0 : 1;
    }
  }
  EXPECT_EQ(count, 52U);
  EXPECT_EQ(media_count, 21U);
}

Request request_of(std::string_view json) { return parse_request(json, "here"); }

Request one_question(std::string_view state) {
  return request_of(
      fmt::format(R"({{"state":"{}","questions":{{"q":{{"type":"noul"}}}}}})", state));
}

std::string text_of(const Record& record, const TokenSpan& span) {
  return micro().decode(std::span(record.input_ids).subspan(span.begin, span.size()));
}

TEST(Record, OptionsAreSortedByIdAndKnowTheirPlaceInTheRequest) {
  const Record record = encode_record(micro(), request_of(R"({"state":"s","questions":{
        "z":{"type":"choice","criteria":{"b":null,"～":1,"😀":2,"B":{"y":[1e3],"x":"\""}}},
        "a":{"type":"score","criteria":["low",null]},
        "n":{"type":"noul","instructions":["i"],"criteria":{"true":null,"false":"no"}}}})"),
                                      {}, {});
  ASSERT_EQ(record.questions.size(), 3U);
  const RecordQuestion& choice = record.questions[0];
  EXPECT_EQ(text_of(record, choice.span), "z");
  ASSERT_EQ(choice.options.size(), 4U);
  EXPECT_EQ(choice.options[0].request_index, 3U);
  EXPECT_EQ(text_of(record, choice.options[0].span),
            R"({"description":{"x":"\"","y":[1000.0]},"option_id":"B"})");
  EXPECT_EQ(choice.options[1].request_index, 0U);
  EXPECT_EQ(text_of(record, choice.options[1].span), R"({"option_id":"b"})");
  EXPECT_EQ(choice.options[2].id, "～");
  EXPECT_EQ(choice.options[3].id, "😀");
  EXPECT_EQ(text_of(record, choice.options[3].span), R"({"description":2,"option_id":"😀"})");
  EXPECT_EQ(text_of(record, record.questions[1].options[0].span),
            R"({"description":"low","option_id":"0"})");
  EXPECT_EQ(text_of(record, record.questions[1].options[1].span), R"({"option_id":"1"})");
  EXPECT_EQ(text_of(record, record.questions[2].span), R"(["i"])");
  EXPECT_EQ(text_of(record, record.questions[2].options[0].span), R"({"option_id":"true"})");
  EXPECT_EQ(text_of(record, record.questions[2].options[1].span),
            R"({"description":"no","option_id":"false"})");
}

std::string message_of(const Request& request, std::span<const MediaItem> media,
                       const RecordLimits& limits, const Tokenizer& tokenizer = micro()) {
  try {
    encode_record(tokenizer, request, media, limits);
  } catch (const Error& error) {
    return fmt::format("{} {}", to_string(error.code()), error.what());
  }
  return "encoded";
}

// Five tokens: digits are one each.
const char kFiveTokens[] = "77777";

TEST(Record, RefusesAStateThatDoesNotFit) {
  const Record whole = encode_record(micro(), one_question(kFiveTokens), {}, {});
  const std::size_t size = whole.input_ids.size();
  EXPECT_EQ(whole.state_tokens, 5U);
  EXPECT_EQ(message_of(one_question(kFiveTokens), {}, {.max_tokens = size}), "encoded");
  EXPECT_EQ(message_of(one_question(kFiveTokens), {}, {.max_tokens = size - 2}),
            fmt::format("too_large state: 5 tokens, expected at most 3 ({} less {} of prompt "
                        "and questions): shorten it by 2",
                        size - 2, size - 5));
  EXPECT_EQ(message_of(one_question(kFiveTokens), {},
                       {.max_state_tokens = 4, .overflow_name = "--truncate"}),
            "too_large state: 5 tokens, expected at most 4 (the limit of the state's own): "
            "shorten it by 1, or let its end be cut off (--truncate)");
  Request named = one_question(kFiveTokens);
  named.state_place = "input";
  EXPECT_THAT(message_of(named, {}, {.max_state_tokens = 4}), StartsWith("too_large input: 5"));
}

TEST(Record, CutsTheStatesEndWhenAsked) {
  const Record whole = encode_record(micro(), one_question(kFiveTokens), {}, {});
  const std::size_t size = whole.input_ids.size();
  const auto cut = [&](std::size_t max_tokens, std::optional<std::size_t> max_state_tokens) {
    return encode_record(micro(), one_question(kFiveTokens), {},
                         {.max_tokens = max_tokens,
                          .max_state_tokens = max_state_tokens,
                          .overflow = RecordLimits::Overflow::kTruncate});
  };
  for (const Record& record :
       {cut(size - 2, std::nullopt), cut(size, 3), cut(size - 2, 4), cut(size - 1, 3)}) {
    EXPECT_EQ(record.input_ids.size(), size - 2);
    EXPECT_EQ(record.state_tokens, 5U);
    EXPECT_EQ(record.dropped_state_tokens, 2U);
    EXPECT_EQ(text_of(record, record.state), "777");
    EXPECT_EQ(record.questions[0].span.begin, whole.questions[0].span.begin - 2);
    EXPECT_EQ(text_of(record, record.questions[0].span), "q");
  }
  EXPECT_EQ(cut(size - 5, std::nullopt).dropped_state_tokens, 5U);
  EXPECT_EQ(cut(size, 0).state.size(), 0U);
}

TEST(Record, RefusesQuestionsThatDoNotFitEvenToCut) {
  const std::size_t fixed = encode_record(micro(), one_question(""), {}, {}).input_ids.size();
  EXPECT_EQ(message_of(one_question("7"), {},
                       {.max_tokens = fixed - 1, .overflow = RecordLimits::Overflow::kTruncate}),
            fmt::format("too_large questions: schema requires {} tokens before state; "
                        "maximum is {}",
                        fixed, fixed - 1));
  // Media count as well: one image of 2 by 2 tokens, its two wrappers and the line feed.
  const std::vector<MediaItem> media{image(4, 4)};
  EXPECT_EQ(message_of(one_question(""), media, {.max_tokens = fixed + 6}),
            fmt::format("too_large questions: schema requires {} tokens before state; "
                        "maximum is {}",
                        fixed + 7, fixed + 6));
}

TEST(Record, RefusesPlaceholdersInTextOnlyNextToMedia) {
  const std::vector<MediaItem> media{image(4, 4)};
  const Request in_state = one_question("see <|image_pad|>");
  EXPECT_EQ(message_of(in_state, {}, {}), "encoded");
  EXPECT_EQ(message_of(in_state, media, {}),
            "invalid_argument state: holds the text <|image_pad|>, expected none in a request with "
            "images or videos");
  EXPECT_EQ(message_of(request_of(R"({"state":{"a":["<|video_pad|>"]},
                                      "questions":{"q":{"type":"noul"}}})"),
                       media, {}),
            "invalid_argument state: holds the text <|video_pad|>, expected none in a request with "
            "images or videos");
  EXPECT_EQ(message_of(request_of(R"({"state":0,"questions":{"<|video_pad|>":{"type":"noul"}}})"),
                       media, {}),
            "invalid_argument questions.<|video_pad|>: holds the text <|video_pad|>, expected none "
            "in a request with images or videos");
  EXPECT_EQ(
      message_of(request_of(R"({"state":0,"questions":{"q":{"type":"noul",
                                      "instructions":"<|image_pad|>"}}})"),
                 media, {}),
      "invalid_argument questions.q.instructions: holds the text <|image_pad|>, expected none "
      "in a request with images or videos");
  EXPECT_EQ(message_of(request_of(R"({"state":0,"questions":{"q":{"type":"choice",
                                      "criteria":{"a<|image_pad|>":null}}}})"),
                       media, {}),
            "invalid_argument questions.q.criteria: holds the text <|image_pad|>, expected none in "
            "a request with images or videos");
  EXPECT_EQ(message_of(one_question("<|vision_start|><|im_end|>"), media, {}), "encoded");
}

TEST(Record, RefusesAQuestionWithoutTokens) {
  Request request = one_question("s");
  request.questions[0].id = "";
  EXPECT_EQ(message_of(request, {}, {}),
            "invalid_argument questions.\"\".instructions: no token, expected at least one");
}

TEST(Record, RefusesTextThatIsNotUtf8) {
  Request request = one_question("s");
  request.state = "a\xff";
  EXPECT_EQ(message_of(request, {}, {}),
            "invalid_argument state: found the byte 0xff at 1, expected valid UTF-8");
  request.state = "a";
  request.questions[0].instructions = Json::array({"\xff"});
  EXPECT_EQ(message_of(request, {}, {}),
            "invalid_argument questions.q.instructions: found the byte 0xff at 2, expected valid "
            "UTF-8");
}

TEST(Record, NeedsATokenizerThatKnowsMedia) {
  std::string json = micro_json();
  for (std::size_t at; (at = json.find("<|video_pad|>")) != json.npos;) {
    json.replace(at, 13, "<|other_pad|>");
  }
  const Tokenizer tokenizer(json, "tokenizer.json");
  const std::vector<MediaItem> media{image(4, 4)};
  EXPECT_EQ(message_of(one_question("s"), {}, {}, tokenizer), "encoded");
  EXPECT_EQ(message_of(one_question("s"), media, {}, tokenizer),
            "corrupt_data tokenizer.json: no token <|video_pad|>, expected one for media");
}

TEST(Record, TimestampsHaveOneDecimalOfTheExactValue) {
  // As printf("%.1f") prints them: exact ties go to the even digit, 0.35 is a little less than it.
  const std::vector<MediaItem> media{
      video(2, 2, {0.25, 0.75, 1.25, 0.05, 0.15, 0.35, 10.45, 0.0, 3600.0})};
  const Record record = encode_record(micro(), one_question("s"), media, {});
  std::string seen;
  for (const MediaRun& run : record.media_runs) {
    EXPECT_EQ(text_of(record, run.span), "<|video_pad|>");
  }
  const std::string prompt = text_of(record, {0, record.state.begin});
  for (std::size_t at = 0; (at = prompt.find(" seconds>", at + 1)) != prompt.npos;) {
    const std::size_t open = prompt.rfind('<', at);
    seen += prompt.substr(open + 1, at - open - 1) + " ";
  }
  EXPECT_EQ(seen, "0.2 0.8 1.2 0.1 0.1 0.3 10.4 0.0 3600.0 ");
}

TEST(Record, MediaRunsPointAtThePadsInOrder) {
  const std::vector<MediaItem> media{image(4, 2), image(2, 6), video(2, 4, {0.5, 1.5})};
  const Record record = encode_record(micro(), one_question("s"), media, {});
  std::vector<std::string> runs;
  for (const MediaRun& run : record.media_runs) {
    runs.push_back(fmt::format("{}x{} {}", run.rows, run.columns, text_of(record, run.span)));
  }
  EXPECT_THAT(
      runs,
      ElementsAre("2x1 <|image_pad|><|image_pad|>", "1x3 <|image_pad|><|image_pad|><|image_pad|>",
                  "1x2 <|video_pad|><|video_pad|>", "1x2 <|video_pad|><|video_pad|>"));
  EXPECT_EQ(record.temporal.size(), record.input_ids.size());
  EXPECT_EQ(record.height.size(), record.input_ids.size());
  EXPECT_EQ(record.width.size(), record.input_ids.size());
}

TEST(Record, JsonHasTheDocumentedMembers) {
  Record record;
  record.input_ids = {7, 8, 9};
  record.questions = {{"q", QuestionType::kChoice, {0, 1}, {{"a", {1, 2}, 1}, {"b", {2, 3}, 0}}}};
  record.state_tokens = 5;
  record.dropped_state_tokens = 2;
  EXPECT_EQ(to_string(record_to_json(record)),
            R"({"input_ids":[7,8,9],"questions":[{"id":"q","type":"choice","span":[0,1],)"
            R"("options":[{"id":"a","span":[1,2]},{"id":"b","span":[2,3]}]}],)"
            R"("state_tokens":5,"dropped_state_tokens":2})");
}

}  // namespace
}  // namespace clefkit
