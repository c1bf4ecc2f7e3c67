#include "clefkit/media/media_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class MediaSource : public ::testing::Test {
 protected:
  MediaSource() {
    fs::create_directories(directory_);
    std::ofstream(directory_ / "a.txt") << "hello";
    options_ = {.allow_files = true, .base_directory = directory_};
  }
  ~MediaSource() override { fs::remove_all(directory_); }

  std::string read(const Json& item) const {
    const auto bytes = read_media_source(item, "images[0]", options_);
    return {bytes.begin(), bytes.end()};
  }

  std::string error(const Json& item) const {
    try {
      read(item);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "read";
  }

  const fs::path directory_ =
      fs::path(::testing::TempDir()) / ("media_source_" + std::to_string(::getpid()));
  MediaSourceOptions options_;
};

TEST_F(MediaSource, TakesEveryForm) {
  EXPECT_EQ(read("aGVsbG8="), "hello");
  EXPECT_EQ(read("data:image/png;base64,aGVsbG8="), "hello");
  EXPECT_EQ(read("data:;base64,aGVsbG8"), "hello");
  EXPECT_EQ(read(Json::object({{"content_type", "image/png"}, {"base64", "aGVsbG8="}})), "hello");
  EXPECT_EQ(read(Json::object({{"base64", "data:image/png;base64,aGVsbG8="}})), "hello");
  EXPECT_EQ(read("file:a.txt"), "hello");
  EXPECT_EQ(read("file:" + (directory_ / "a.txt").string()), "hello");
  EXPECT_EQ(read("file://" + (directory_ / "a.txt").string()), "hello");
}

TEST_F(MediaSource, SaysWhatIsWrongWithAForm) {
  EXPECT_THAT(error("https://example.org/a.png"), HasSubstr("images[0]: a web address"));
  EXPECT_THAT(error("data:image/png,abc"), HasSubstr("not base64"));
  EXPECT_THAT(error("data:image/png;base64"), HasSubstr("without a comma"));
  EXPECT_THAT(error("photo.png"), HasSubstr("not base64, expected a data URL"));
  EXPECT_THAT(error(Json::object({{"url", "x"}})), HasSubstr("images[0].base64: missing"));
  EXPECT_THAT(error(Json(7)), HasSubstr("images[0]: a number"));
}

TEST_F(MediaSource, ReadsFilesOnlyWhereAllowed) {
  options_.allow_files = false;
  EXPECT_THAT(error("file:a.txt"), HasSubstr("files are not read"));
}

TEST_F(MediaSource, ReadsRegularFilesOnly) {
  EXPECT_THAT(error("file:nothing"), HasSubstr("No such file"));
  EXPECT_THAT(error("file:."), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error("file:pipe"), HasSubstr("not a regular file"));
  EXPECT_THAT(error("file:/dev/zero"), HasSubstr("not a regular file"));
}

TEST_F(MediaSource, LimitsBytesBeforeReading) {
  options_.max_bytes = 4;
  EXPECT_THAT(error("file:a.txt"), HasSubstr("5 bytes, expected at most 4"));
  EXPECT_THAT(error("aGVsbG8="), HasSubstr("6 bytes, expected at most 4"));
  fs::resize_file(directory_ / "a.txt", std::uintmax_t{1} << 40);
  EXPECT_THAT(error("file:a.txt"), HasSubstr("1099511627776 bytes"));
}

}  // namespace
}  // namespace clefkit
