#include "clefkit/server/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/base/error.h"
#include "clefkit/server/refusal.h"

namespace clefkit::server {
namespace {

using ::testing::HasSubstr;

Json json(std::string_view text) { return parse_json(text, "test", {}); }

http::Request multipart(std::string_view json_text, std::string_view more) {
  http::Request request;
  request.headers.emplace_back("Content-Type", "multipart/form-data; boundary=b");
  request.body = fmt::format(
      "--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{}\r\n{}--b--\r\n", json_text,
      more);
  return request;
}

std::string part(std::string_view name, std::string_view content) {
  return fmt::format(
      "--b\r\nContent-Disposition: form-data; name=\"{0}\"; filename=\"{0}\"\r\n\r\n{1}\r\n", name,
      content);
}

// The message, with its place; empty when there is none.
template <typename Function>
std::string refusal(Function&& function) {
  try {
    function();
  } catch (const Refusal& refused) {
    return refused.message();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Assets, TakeTheirBytesFromParts) {
  const Json body = read_multipart_body(
      multipart(R"({"assets": {"a": {"type": "image", "part": "p0", "data_base64": "x"},
                              "b": {"data_base64": "Zm9v"}}})",
                part("p0", "foobar")),
      {});
  EXPECT_EQ(body, json(R"({"assets": {"a": {"type": "image", "data_base64": "Zm9vYmFy"},
                                      "b": {"data_base64": "Zm9v"}}})"));
}

TEST(Assets, ClaimEveryPartOnce) {
  const auto refused = [](std::string_view text, std::string_view more) {
    return refusal([&] { read_multipart_body(multipart(text, more), {}); });
  };
  EXPECT_THAT(refused("{}", part("p0", "1")), HasSubstr("none has \"part\": \"p0\""));
  EXPECT_THAT(refused(R"({"assets": null})", part("p0", "1")), HasSubstr("none has \"part\""));
  EXPECT_THAT(refused(R"({"assets": 1})", part("p0", "1")), HasSubstr("assets: a number"));
  EXPECT_THAT(refused(R"({"assets": {"a": {"part": "p1"}}})", part("p0", "1")),
              HasSubstr("assets.\"a\".part: no part of the body is called \"p1\""));
  EXPECT_THAT(refused(R"({"assets": {"a": {"part": "request"}}})", ""), HasSubstr("no part"));
  EXPECT_THAT(refused(R"({"assets": {"a": {"part": "p"}, "b": {"part": "p"}}})", part("p", "1")),
              HasSubstr("assets.\"b\".part: the part \"p\" is another asset's"));
  EXPECT_THAT(refused(R"({"assets": {"a": {"part": 3}}})", ""), HasSubstr("expected a string"));
  EXPECT_THAT(refused("{", ""), HasSubstr("not valid JSON"));
  http::Request request = multipart("{}", "");
  request.body = "--b\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n{}\r\n--b--";
  EXPECT_THAT(refusal([&] { read_multipart_body(request, {}); }),
              HasSubstr("without a part \"request\""));
}

TEST(Assets, StandForThePlaceOfTheirPicture) {
  Json body = json(R"({
    "state": {"photo": "see photo", "more": ["<image:0a>photo", 7, null, "none"]},
    "images": ["Zm9v"],
    "assets": {"photo": {"data_base64": "YQ=="}, "photo2": {"type": "image", "data_base64": "Yg=="},
               "<image:0a>": {"format": "png", "data_base64": "Yw=="}},
    "questions": {
      "photo": {"type": "noul", "instructions": "Is photo2 like photo?"},
      "kind": {"type": "choice", "criteria": {"photo": "As on photo2", "b": null}},
      "level": {"type": "score", "criteria": ["photo", {"as": "photo2"}]}}})");
  std::vector<Asset> assets = take_assets(body);
  EXPECT_EQ(body.find("assets"), nullptr);
  Request request = request_from_json(std::move(body), "body");
  place_assets(std::move(assets), request);

  EXPECT_EQ(request.images, (std::vector<MediaSource>{{"Zm9v", "images[0]"},
                                                      {"YQ==", "assets.\"photo\""},
                                                      {"Yg==", "assets.\"photo2\""},
                                                      {"Yw==", "assets.\"<image:0a>\""}}));
  EXPECT_EQ(request.state, json(R"({"photo": "see images[1]",
                                    "more": ["images[3]images[1]", 7, null, "none"]})"));
  EXPECT_EQ(request.questions[0].id, "photo");
  EXPECT_EQ(*request.questions[0].instructions, Json("Is images[2] like images[1]?"));
  EXPECT_EQ(request.questions[1].options[0].id, "photo");
  EXPECT_EQ(*request.questions[1].options[0].description, Json("As on images[2]"));
  EXPECT_EQ(*request.questions[2].options[0].description, Json("images[1]"));
  EXPECT_EQ(*request.questions[2].options[1].description, json(R"({"as": "images[2]"})"));
  // The protocol repeats the levels as they came.
  EXPECT_EQ(request.questions[2].legend[0], Json("photo"));
}

// Such a part is a picture of its own; what looks like a name within it is not one.
TEST(Assets, LeaveImagePartsOfTheStateAlone) {
  const std::string part =
      R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGFzZQ=="}})";
  Json body = json(R"({"state": [{"text": "see image and data"}, )" + part + R"(],
      "assets": {"image": {"data_base64": "YQ=="}, "data": {"data_base64": "Yg=="}},
      "questions": {"q": {"type": "noul"}}})");
  std::vector<Asset> assets = take_assets(body);
  Request request = request_from_json(std::move(body), "body");
  place_assets(std::move(assets), request);
  EXPECT_EQ(request.state, json(R"([{"text": "see images[0] and images[1]"}, )" + part + "]"));
}

// A long text against names that nearly match everywhere: linear, or this would take minutes.
TEST(Assets, AreFoundInLongTextsOfNearMatches) {
  std::vector<Asset> assets;
  for (char c = '!'; c < '!' + 63; ++c) {
    assets.push_back({.name = std::string(63, 'a') + c, .place = "assets", .image = Json("YQ==")});
  }
  Request request;
  std::string state(1'000'000, 'a');
  for (const Asset& asset : assets) state += asset.name;
  request.state = Json(state);
  place_assets(assets, request);
  EXPECT_EQ(request.images.size(), 63u);
}

TEST(Assets, ThatNothingNamesAreRefused) {
  // Also one whose name stands in the descriptions that a noul has by default.
  for (const char* name : {"b", "answer"}) {
    Json body = json(fmt::format(R"({{"state": "ab", "assets": {{"ab": {{"data_base64": "YQ=="}},
        "{}": {{"data_base64": "YQ=="}}}}, "questions": {{"b": {{"type": "noul"}}}}}})",
                                 name));
    std::vector<Asset> assets = take_assets(body);
    Request request = request_from_json(std::move(body), "body");
    try {
      place_assets(std::move(assets), request);
      FAIL() << name;
    } catch (const Refusal& refused) {
      EXPECT_EQ(refused.kind, Refusal::Kind::kUnusedAsset);
      EXPECT_EQ(refused.where, fmt::format("assets.\"{}\"", name));
    }
  }
}

TEST(Assets, LeaveDefaultDescriptionsAlone) {
  Json body = json(R"({"state": "The answer", "assets": {"answer": {"data_base64": "YQ=="}},
      "questions": {"q": {"type": "noul", "criteria": {"false": "No answer"}}}})");
  std::vector<Asset> assets = take_assets(body);
  Request request = request_from_json(std::move(body), "body");
  place_assets(std::move(assets), request);
  EXPECT_EQ(request.state, Json("The images[0]"));
  EXPECT_EQ(*request.questions[0].options[0].description,
            Json("The proposition is true or the answer is yes."));
  EXPECT_EQ(*request.questions[0].options[1].description, Json("No images[0]"));
}

TEST(Assets, MustBeWellFormed) {
  const auto refused = [](std::string_view assets) {
    return refusal([&] {
      Json body = json(fmt::format(R"({{"assets": {}}})", assets));
      take_assets(body);
    });
  };
  EXPECT_EQ(refused("null"), "");
  EXPECT_THAT(refused("[]"), HasSubstr("an array, expected an object with 1 to 64 members"));
  EXPECT_THAT(refused("{}"), HasSubstr("0 members"));
  EXPECT_THAT(refused(R"({"": {"data_base64": ""}})"),
              HasSubstr("a name of 0 bytes, expected 1 to 64"));
  EXPECT_THAT(refused("{\"" + std::string(65, 'n') + R"(": {"data_base64": ""}})"),
              HasSubstr("a name of 65 bytes, expected 1 to 64"));
  EXPECT_THAT(refused(R"({"a": "YQ=="})"), HasSubstr("assets.\"a\": \"YQ==\", expected an object"));
  EXPECT_THAT(refused(R"({"a": {"type": "video", "data_base64": ""}})"),
              HasSubstr("assets.\"a\".type: \"video\", expected \"image\""));
  EXPECT_THAT(refused(R"({"a": {"type": "image"}})"), HasSubstr("assets.\"a\".data_base64"));
  EXPECT_THAT(refused(R"({"a": {"part": "p0"}})"), HasSubstr("expected a multipart body"));
  std::string many = "{";
  for (int i = 0; i <= 64; ++i) {
    many += fmt::format("{}\"n{}\": {{\"data_base64\": \"\"}}", i > 0 ? "," : "", i);
  }
  EXPECT_THAT(refused(many + "}"), HasSubstr("65 members"));
}

}  // namespace
}  // namespace clefkit::server
