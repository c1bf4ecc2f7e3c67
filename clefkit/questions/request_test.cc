#include "clefkit/questions/request.h"

#include <gtest/gtest.h>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

std::string message_of(std::string_view json, const RequestLimits& limits = {}) {
  try {
    parse_request(json, "request.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

// A request with one question `q` of this JSON text.
std::string with_question(std::string_view question) {
  return fmt::format(R"({{"state":"s","questions":{{"q":{}}}}})", question);
}

Question question_of(std::string_view question) {
  return parse_request(with_question(question), "here").questions.at(0);
}

TEST(Request, KeepsTheRequestsOrder) {
  const Request request = parse_request(R"({
    "model": "clef-flash", "state": {"b": 1.50, "a": [null]}, "extra": 1,
    "questions": {
      "z": {"type": "noul", "instructions": "True?"},
      "a": {"type": "choice", "instructions": {"b": 1}, "criteria": {"y": null, "x": ["d"]}},
      "m": {"type": "score", "criteria": ["low", null, {"k": 1}]}}})",
                                        "here");
  EXPECT_EQ(request.model, "clef-flash");
  EXPECT_EQ(to_string(request.state), R"({"b":1.50,"a":[null]})");
  ASSERT_EQ(request.questions.size(), 3U);
  EXPECT_EQ(request.questions[0].id, "z");
  EXPECT_EQ(request.questions[0].instructions, Json("True?"));

  const Question& choice = request.questions[1];
  EXPECT_EQ(choice.type, QuestionType::kChoice);
  EXPECT_EQ(choice.instructions, Json::object({{"b", 1}}));
  ASSERT_EQ(choice.options.size(), 2U);
  EXPECT_EQ(choice.options[0].id, "y");
  EXPECT_EQ(choice.options[0].description, std::nullopt);
  EXPECT_EQ(choice.options[1].id, "x");
  EXPECT_EQ(choice.options[1].description, Json::array({"d"}));
  EXPECT_TRUE(choice.legend.empty());

  const Question& score = request.questions[2];
  EXPECT_EQ(score.instructions, std::nullopt);
  ASSERT_EQ(score.options.size(), 3U);
  EXPECT_EQ(score.options[0].id, "0");
  EXPECT_EQ(score.options[0].description, Json("low"));
  EXPECT_EQ(score.options[1].description, std::nullopt);
  EXPECT_EQ(score.options[2].id, "2");
  EXPECT_EQ(score.legend, (std::vector<Json>{Json("low"), Json(), Json::object({{"k", 1}})}));
}

TEST(Request, NoulDescriptionsDefaultUnlessGivenOrTakenAway) {
  using Descriptions = std::pair<std::optional<Json>, std::optional<Json>>;
  const auto descriptions_of = [](std::string_view question) {
    const Question noul = question_of(question);
    EXPECT_EQ(noul.options.at(0).id, "true");
    EXPECT_EQ(noul.options.at(1).id, "false");
    return Descriptions(noul.options[0].description, noul.options[1].description);
  };
  const Json yes = "The proposition is true or the answer is yes.";
  const Json no = "The proposition is false or the answer is no.";
  EXPECT_EQ(descriptions_of(R"({"type":"noul"})"), Descriptions(yes, no));
  EXPECT_EQ(descriptions_of(R"({"type":"noul","criteria":null})"), Descriptions(yes, no));
  EXPECT_EQ(descriptions_of(R"({"type":"noul","criteria":{}})"), Descriptions(yes, no));
  EXPECT_EQ(descriptions_of(R"({"type":"noul","criteria":{"false":"F","maybe":1}})"),
            Descriptions(yes, Json("F")));
  EXPECT_EQ(descriptions_of(R"({"type":"noul","criteria":{"true":{"a":1},"false":null}})"),
            Descriptions(Json::object({{"a", 1}}), std::nullopt));
}

TEST(Request, InstructionsMayBeAnyJson) {
  for (const char* given : {"0", "false", "[]", "{}", "1e999", "\" \""}) {
    const Question question =
        question_of(fmt::format(R"({{"type":"noul","instructions":{}}})", given));
    EXPECT_EQ(to_string(question.instructions.value()), given);
  }
  for (const char* none : {"null", "\"\""}) {
    EXPECT_EQ(question_of(fmt::format(R"({{"type":"noul","instructions":{}}})", none)).instructions,
              std::nullopt);
  }
}

TEST(Request, ModelAndMediaMayBeMissingOrNull) {
  const Request bare = parse_request(R"({"state":null,"questions":{"q":{"type":"noul"}}})", "here");
  EXPECT_EQ(bare.model, std::nullopt);
  EXPECT_TRUE(bare.state.is_null());
  const Request nulls = parse_request(R"({"state":"","questions":{"q":{"type":"noul"}},"model":null,
                                         "images":null,"videos":null,"media_kwargs":null})",
                                      "here");
  EXPECT_EQ(nulls.model, std::nullopt);
  EXPECT_TRUE(nulls.images.empty() && nulls.videos.empty());
  EXPECT_EQ(nulls.media_kwargs, std::nullopt);
  const Request media = parse_request(R"({"state":"","questions":{"q":{"type":"noul"}},
      "images":["file:a.png",{"base64":"x"}],"videos":[1],"media_kwargs":{"min_pixels":1}})",
                                      "here");
  EXPECT_EQ(media.images,
            (std::vector<MediaSource>{{"file:a.png", "images[0]"},
                                      {Json::object({{"base64", "x"}}), "images[1]"}}));
  EXPECT_EQ(media.videos, (std::vector<MediaSource>{{1, "videos[0]"}}));
  EXPECT_EQ(media.media_kwargs, Json::object({{"min_pixels", 1}}));
}

TEST(Request, IdsMayBeAnyText) {
  const Request request = parse_request(
      R"({"state":1,"questions":{"a b.c\nÜ":{"type":"noul"},"":{"type":"noul","instructions":"x"}}})",
      "here");
  EXPECT_EQ(request.questions[0].id, "a b.c\nÜ");
  EXPECT_EQ(request.questions[1].id, "");
}

TEST(Request, RepeatedKeysCountWhereTheyHaveAMeaning) {
  EXPECT_EQ(message_of(R"({"state":1,"state":2,"questions":{"q":{"type":"noul"}}})"),
            R"(request.json: the key "state" stands twice in one object)");
  EXPECT_EQ(message_of(R"({"state":1,"questions":{"q":{"type":"noul"},"q":{"type":"noul"}}})"),
            R"(request.json: the key "q" stands twice in one object)");
  EXPECT_EQ(message_of(with_question(R"({"type":"noul","type":"noul"})")),
            R"(request.json: the key "type" stands twice in one object)");
  EXPECT_EQ(message_of(with_question(R"({"type":"choice","criteria":{"a":1,"a":2}})")),
            R"(request.json: the key "a" stands twice in one object)");
  EXPECT_EQ(message_of(R"({"state":1,"questions":{"q":{"type":"noul"}},"images":[{"a":1,"a":2}]})"),
            R"(request.json: the key "a" stands twice in one object)");
}

TEST(Request, RepeatedKeysTakeTheLastValueInWhatIsOnlyShown) {
  const Request request = parse_request(R"({
    "state": {"a": 1, "b": [{"x": 1, "x": 2}], "a": 3}, "ignored": {"k": 1, "k": 2},
    "questions": {
      "c": {"type": "choice", "instructions": {"i": 1, "i": 2}, "criteria": {"o": {"d": 1, "d": 2}}},
      "s": {"type": "score", "criteria": [{"d": 1, "d": 2}]}}})",
                                        "here");
  EXPECT_EQ(to_string(request.state), R"({"a":3,"b":[{"x":2}]})");
  EXPECT_EQ(request.questions[0].instructions, Json::object({{"i", 2}}));
  EXPECT_EQ(request.questions[0].options[0].description, Json::object({{"d", 2}}));
  EXPECT_EQ(request.questions[1].legend[0], Json::object({{"d", 2}}));
}

TEST(Request, RefusesRepeatedKeysOfJsonPutTogetherByACaller) {
  const Json noul = Json::object({{"type", "noul"}});
  const Json request =
      Json::object({{"state", 1}, {"questions", Json::object({{"q", noul}, {"q", noul}})}});
  try {
    request_from_json(request, "here");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), R"(questions: "q" stands twice, expected once)");
  }
}

struct BadRequest {
  std::string json;
  std::string message;
};

TEST(Request, SaysWhatIsWrongWithIt) {
  const std::vector<BadRequest> cases{
      {"", "request.json: not valid JSON at byte 0: found the end of the text, expected a value"},
      {"[]", "request.json: an array, expected an object"},
      {R"("text")", R"(request.json: "text", expected an object)"},
      {R"({"model":7,"state":1,"questions":{"q":{"type":"noul"}}})",
       "model: a number, expected a string"},
      {R"({"questions":{"q":{"type":"noul"}}})", "state: missing, expected any JSON value"},
      {R"({"state":1})", "questions: missing, expected an object from id to question"},
      {R"({"state":1,"questions":null})",
       "questions: null, expected an object from id to question"},
      {R"({"state":1,"questions":[{"type":"noul"}]})",
       "questions: an array, expected an object from id to question"},
      {R"({"state":1,"questions":{}})", "questions: empty, expected at least one question"},
      {with_question("null"), "questions.q: null, expected an object"},
      {with_question("\"noul\""), "questions.q: \"noul\", expected an object"},
      {with_question("{}"), "questions.q.type: missing, expected noul, choice or score"},
      {with_question(R"({"type":"Noul"})"),
       "questions.q.type: \"Noul\", expected noul, choice or score"},
      {with_question(R"({"type":["noul"]})"),
       "questions.q.type: an array, expected noul, choice or score"},
      {with_question(R"({"type":"a\nb"})"),
       "questions.q.type: \"a\\nb\", expected noul, choice or score"},
      {with_question(R"({"type":"noul","criteria":["yes","no"]})"),
       "questions.q.criteria: an array, expected an object with the descriptions of true and "
       "false"},
      {with_question(R"({"type":"choice"})"),
       "questions.q.criteria: missing, expected an object from option to description"},
      {with_question(R"({"type":"choice","criteria":["a","b"]})"),
       "questions.q.criteria: an array, expected an object from option to description"},
      {with_question(R"({"type":"choice","criteria":{}})"),
       "questions.q.criteria: 0 options, expected 1 to 255"},
      {with_question(R"({"type":"choice","criteria":{"a":1,"":2}})"),
       "questions.q.criteria: an option with the id \"\", expected at least one character"},
      {with_question(R"({"type":"score"})"),
       "questions.q.criteria: missing, expected an array of levels from low to high"},
      {with_question(R"({"type":"score","criteria":{"0":"low"}})"),
       "questions.q.criteria: an object, expected an array of levels from low to high"},
      {with_question(R"({"type":"score","criteria":[]})"),
       "questions.q.criteria: 0 levels, expected 1 to 255"},
      {R"({"state":1,"questions":{"":{"type":"noul","instructions":""}}})",
       "questions.\"\".instructions: missing, expected some where the question's id is empty"},
      {R"({"state":1,"questions":{"a b.c":{"type":0}}})",
       "questions.\"a b.c\".type: a number, expected noul, choice or score"},
      {R"({"state":1,"questions":{"a\nb":{"type":0}}})",
       "questions.\"a\\nb\".type: a number, expected noul, choice or score"},
      {R"({"state":1,"questions":{"q":{"type":"noul"}},"images":"a.png"})",
       "images: \"a.png\", expected an array"},
      {R"({"state":1,"questions":{"q":{"type":"noul"}},"videos":{}})",
       "videos: an object, expected an array"},
      {R"({"state":1,"questions":{"q":{"type":"noul"}},"media_kwargs":[]})",
       "media_kwargs: an array, expected an object"},
  };
  for (const BadRequest& bad : cases) EXPECT_EQ(message_of(bad.json), bad.message) << bad.json;
}

TEST(Request, CutsLongTextInMessagesBetweenCharacters) {
  std::string id;
  for (int i = 0; i < 100; ++i) id += "é";
  std::string first_30;
  for (int i = 0; i < 30; ++i) first_30 += "é";
  EXPECT_EQ(message_of(fmt::format(R"({{"state":1,"questions":{{"{}":1}}}})", id)),
            "questions.\"" + first_30 + "\"…: a number, expected an object");
}

TEST(QuestionPlace, QuotesWhatCouldBeMisread) {
  EXPECT_EQ(question_place("team-Ü"), "questions.team-Ü");
  EXPECT_EQ(question_place(""), "questions.\"\"");
  EXPECT_EQ(question_place("a.type"), "questions.\"a.type\"");
  EXPECT_EQ(question_place("\xff\xfe"), "questions.\"\uFFFD\uFFFD\"");
}

std::string choice_of(std::size_t options) {
  std::string criteria;
  for (std::size_t i = 0; i < options; ++i) {
    criteria += fmt::format("{}\"o{}\":null", i == 0 ? "" : ",", i);
  }
  return with_question(fmt::format(R"({{"type":"choice","criteria":{{{}}}}})", criteria));
}

std::string score_of(std::size_t levels) {
  std::string criteria = "null";
  for (std::size_t i = 1; i < levels; ++i) criteria += ",null";
  return with_question(fmt::format(R"({{"type":"score","criteria":[{}]}})", criteria));
}

TEST(Request, CountsOptionsLevelsAndQuestions) {
  EXPECT_EQ(message_of(choice_of(1)), "accepted");
  EXPECT_EQ(message_of(choice_of(255)), "accepted");
  EXPECT_EQ(message_of(choice_of(256)), "questions.q.criteria: 256 options, expected 1 to 255");
  EXPECT_EQ(message_of(score_of(1)), "accepted");
  EXPECT_EQ(message_of(score_of(255)), "accepted");
  EXPECT_EQ(message_of(score_of(256)), "questions.q.criteria: 256 levels, expected 1 to 255");

  const RequestLimits narrow{.max_questions = 1, .options = {2, 3}, .levels = {2, 10}};
  EXPECT_EQ(message_of(choice_of(1), narrow), "questions.q.criteria: 1 options, expected 2 to 3");
  EXPECT_EQ(message_of(score_of(11), narrow), "questions.q.criteria: 11 levels, expected 2 to 10");
  EXPECT_EQ(message_of(R"({"state":1,"questions":{"a":{},"b":{}}})", narrow),
            "questions: 2 questions, expected at most 1");
}

TEST(Request, HasALimitedSizeAndDepth) {
  EXPECT_EQ(message_of(with_question("{}"), {.bytes = 10}),
            "request.json: 34 bytes of JSON, expected at most 10");
  const auto nested = [](std::size_t depth) {
    return R"({"questions":{"q":{"type":"noul"}},"state":)" + std::string(depth, '[') +
           std::string(depth, ']') + "}";
  };
  EXPECT_EQ(message_of(nested(63)), "accepted");
  EXPECT_EQ(message_of(nested(64)), "request.json: JSON nested more than 64 deep");
}

TEST(RequestLines, AreOneRequestEach) {
  const std::string line = with_question(R"({"type": "noul"})");
  const auto requests = parse_request_lines(line + "\n\n \t\r\n" + line + "\r\n" + line, "f");
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].place, "f line 4");
  const auto message = [](const std::string& lines) {
    try {
      parse_request_lines(lines, "f.jsonl");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("\n"), "f.jsonl: no requests, expected one a line");
  EXPECT_EQ(message(""), "f.jsonl: no requests, expected one a line");
  EXPECT_TRUE(message(line + "\n\n{\n").starts_with("f.jsonl line 3: not valid JSON"));
  EXPECT_EQ(message(line + "\n{}"), "f.jsonl line 2: state: missing, expected any JSON value");
}

}  // namespace
}  // namespace clefkit
