#include "clefkit/bundle/fast_precision.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "clefkit/base/error_of.h"
#include "clefkit/base/file_io.h"
#include "clefkit/bundle/bundle_files.h"
#include "clefkit/bundle/manifest.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

class FastPrecisionTest : public testing::Test {
 protected:
  FastPrecisionTest() {
    fs::create_directories(bundle_);
    write_file(bundle_ / kManifestFile, "{}");
  }
  ~FastPrecisionTest() override { fs::remove_all(bundle_); }

  const fs::path bundle_ =
      fs::path(testing::TempDir()) / ("fast_precision_" + std::to_string(::getpid()));
};

TEST(FastPrecision, IsAccurateEnoughUpToTheLimitsOnly) {
  const FastPrecision good{.questions = 20, .mean_drift = 0.003, .largest_drift = 0.5};
  EXPECT_TRUE(is_accurate_enough(good));
  FastPrecision measured = good;
  measured.questions = 19;
  EXPECT_FALSE(is_accurate_enough(measured));
  measured = good;
  measured.mean_drift = 0.0031;
  EXPECT_FALSE(is_accurate_enough(measured));
  measured = good;
  measured.changed_beyond_margin = 1;
  EXPECT_FALSE(is_accurate_enough(measured));
}

TEST_F(FastPrecisionTest, IsKeptForItsOwnManifest) {
  EXPECT_FALSE(read_fast_precision(bundle_));
  write_fast_precision(bundle_, {.questions = 27,
                                 .mean_drift = 0.00125,
                                 .largest_drift = 0.0625,
                                 .changed_beyond_margin = 0});
  const auto found = read_fast_precision(bundle_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->questions, 27u);
  EXPECT_EQ(found->mean_drift, 0.00125);
  EXPECT_EQ(found->largest_drift, 0.0625);
  EXPECT_EQ(found->changed_beyond_margin, 0u);

  write_file(bundle_ / kManifestFile, "{ }");
  EXPECT_FALSE(read_fast_precision(bundle_));
}

TEST_F(FastPrecisionTest, CanBeTakenBackTwice) {
  write_fast_precision(bundle_, {});
  remove_fast_precision(bundle_);
  remove_fast_precision(bundle_);
  EXPECT_FALSE(read_fast_precision(bundle_));
}

TEST_F(FastPrecisionTest, RefusesDamage) {
  for (const char* text :
       {"", "[]", "{}", R"({"manifest_sha256": 1})",
        R"({"manifest_sha256": "x", "questions": -1, "mean_drift": 0, "largest_drift": 0,
            "changed_beyond_margin": 0})",
        R"({"manifest_sha256": "x", "questions": 1, "mean_drift": "0", "largest_drift": 0,
            "changed_beyond_margin": 0})"}) {
    write_file(bundle_ / kFastPrecisionFile, text);
    EXPECT_EQ(error_of([&] { read_fast_precision(bundle_); }).code(), ErrorCode::kCorruptData)
        << text;
  }
}

}  // namespace
}  // namespace clefkit
