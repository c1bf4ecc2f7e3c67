#include "clefkit/server/key_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "clefkit/base/error_of.h"
#include "clefkit/base/file_io.h"

namespace clefkit::server {
namespace {

namespace fs = std::filesystem;

class KeyFileTest : public testing::Test {
 protected:
  ~KeyFileTest() override { fs::remove(file_); }
  // With a time of its own, however quickly files are written one after the other.
  void write(const std::string& text) {
    write_file(file_, text);
    time_ += std::chrono::seconds(10);
    fs::last_write_time(file_, time_);
  }
  const fs::path file_ = fs::path(testing::TempDir()) / ("keys_" + std::to_string(::getpid()));
  fs::file_time_type time_ = fs::file_time_type::clock::now();
};

TEST(KeyStore, AsksForNothingWithoutKeys) {
  EXPECT_FALSE(KeyStore({}, {}).asks_for_key());
  EXPECT_FALSE(KeyStore({" ", ""}, {}).asks_for_key());
  EXPECT_TRUE(KeyStore({"k"}, {}).asks_for_key());
}

TEST(KeyStore, AcceptsWholeKeysOnly) {
  KeyStore keys({"first", " second "}, {});
  EXPECT_TRUE(keys.accepts("first"));
  EXPECT_TRUE(keys.accepts("second"));
  for (const char* wrong : {"", "firs", "first ", "FIRST", "firstsecond"}) {
    EXPECT_FALSE(keys.accepts(wrong)) << wrong;
  }
}

TEST_F(KeyFileTest, ReadsAKeyALineAndTheFileAgainWhenItChanges) {
  write("# team a\nalpha\r\n\n  beta\n");
  KeyStore keys({}, file_);
  EXPECT_TRUE(keys.accepts("alpha"));
  EXPECT_TRUE(keys.accepts("beta"));
  EXPECT_FALSE(keys.accepts("# team a"));
  EXPECT_FALSE(keys.accepts("gamma"));

  write("gamma\n");
  ::usleep(1'100'000);  // It looks at the file once a second.
  EXPECT_TRUE(keys.accepts("gamma"));
  EXPECT_FALSE(keys.accepts("alpha"));

  write("\n");
  ::usleep(1'100'000);
  EXPECT_FALSE(keys.accepts("gamma"));
  EXPECT_NE(keys.problem(), "");
  EXPECT_TRUE(keys.asks_for_key());

  write("gamma\n");
  ::usleep(1'100'000);
  EXPECT_TRUE(keys.accepts("gamma"));
  EXPECT_EQ(keys.problem(), "");
  ::unlink(file_.c_str());
  ::usleep(1'100'000);
  EXPECT_FALSE(keys.accepts("gamma"));
}

TEST_F(KeyFileTest, RefusesAFileWithoutKeys) {
  EXPECT_EQ(error_of([&] { KeyStore({}, file_); }).code(), ErrorCode::kInvalidArgument);
  write("# none\n");
  EXPECT_EQ(error_of([&] { KeyStore({}, file_); }).code(), ErrorCode::kInvalidArgument);
}

TEST(KeyOf, ReadsBearerAndCloudflaresHeader) {
  EXPECT_EQ(key_of("Bearer abc", {}), "abc");
  EXPECT_EQ(key_of("bearer  abc ", {}), "abc");
  EXPECT_EQ(key_of("Basic abc", {}), std::nullopt);
  EXPECT_EQ(key_of("Bearer", {}), std::nullopt);
  EXPECT_EQ(key_of({}, "abc"), "abc");
  EXPECT_EQ(key_of({}, {}), std::nullopt);
}

}  // namespace
}  // namespace clefkit::server
