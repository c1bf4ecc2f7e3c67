#include "clefkit/http/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/base/error.h"

namespace clefkit::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kType[] = "multipart/form-data; boundary=xyz";

MATCHER_P3(IsPart, name, type, content, "") {
  return arg.name == name && arg.content_type == type && arg.content == content;
}

// The message of the refusal; empty when there is none.
std::string refusal(std::string_view type, std::string_view body, std::size_t max_parts = 4) {
  try {
    parse_multipart(type, body, max_parts);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.message());
  }
  return "";
}

TEST(Multipart, SplitsParts) {
  const std::string body =
      "--xyz\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: "
      "application/json\r\n\r\n{}\r\n"
      "--xyz\r\ncontent-type: image/png\r\ncontent-disposition: form-data; filename=\"a;b\"; "
      "NAME=picture\r\n\r\n\x89PNG\r\n\r\n--xy\r\n\r\n"
      "--xyz--\r\n";
  EXPECT_THAT(parse_multipart(kType, body, 2),
              ElementsAre(IsPart("request", "application/json", "{}"),
                          IsPart("picture", "image/png", "\x89PNG\r\n\r\n--xy\r\n")));
}

TEST(Multipart, TakesWhatRfc2046Allows) {
  const std::string body =
      "for readers without MIME\r\n--a b:c  \t\r\nContent-Disposition: form-data; "
      "name=\"q\\\"\\\\\"\r\n\r\n\r\n--a b:c--epilogue";
  EXPECT_THAT(parse_multipart("Multipart/Form-Data; charset=utf-8; Boundary=\"a b:c\"", body, 1),
              ElementsAre(IsPart("q\"\\", "", "")));
  EXPECT_THAT(parse_multipart(kType, "--xyz--", 1), ElementsAre());
}

TEST(Multipart, RefusesWhatIsNotWhole) {
  const std::string body =
      "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n12345\r\n--xyz--";
  EXPECT_EQ(refusal(kType, body), "");
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_NE(refusal(kType, std::string_view(body).substr(0, size)), "") << size;
  }
}

TEST(Multipart, SaysWhatIsWrong) {
  const std::string part = "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
  EXPECT_THAT(refusal("multipart/form-data", "--xyz--"), HasSubstr("without a boundary"));
  EXPECT_THAT(refusal("multipart/form-data; boundary=" + std::string(71, 'x'), ""),
              HasSubstr("71 characters"));
  EXPECT_THAT(refusal(kType, "--abc--"), HasSubstr("without its boundary"));
  EXPECT_THAT(refusal(kType, part), HasSubstr("closing boundary"));
  EXPECT_THAT(refusal(kType, part + part + "--xyz--"), HasSubstr("two parts called \"a\""));
  EXPECT_THAT(refusal(kType, part + "--xyz--", 0), HasSubstr("more than 0 parts"));
  EXPECT_THAT(refusal(kType, "--xyzabc\r\n\r\n\r\n--xyz--"), HasSubstr("more on its line"));
  EXPECT_THAT(refusal(kType, "--xyz\r\nContent-Type: a/b\r\n\r\n1\r\n--xyz--"),
              HasSubstr("Content-Disposition"));
  EXPECT_THAT(refusal(kType, "--xyz\r\n\r\n1\r\n--xyz--"), HasSubstr("Content-Disposition"));
  EXPECT_THAT(refusal(kType, "--xyz\r\nno colon\r\n\r\n1\r\n--xyz--"), HasSubstr("colon"));
  EXPECT_THAT(refusal(kType, "--xyz\r\nname: a\r\n--xyz--"), HasSubstr("empty line"));
  EXPECT_THAT(refusal(kType, "--xyz\r\nA: " + std::string(9000, 'b') + "\r\n\r\n1\r\n--xyz--"),
              HasSubstr("at most 8192"));
}

}  // namespace
}  // namespace clefkit::http
