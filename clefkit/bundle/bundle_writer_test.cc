#include "clefkit/bundle/bundle_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/sha256.h"
#include "clefkit/bundle/background_sink.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

class BundleWriterTest : public testing::Test {
 protected:
  BundleWriterTest() {
    std::string pattern = (fs::temp_directory_path() / "clefkit-writer-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    out_ = folder_ / "bundle";
  }
  ~BundleWriterTest() override { fs::remove_all(folder_); }

  fs::path partial() const { return out_.string() + ".partial"; }
  fs::path journal() const { return out_.string() + ".partial.journal"; }

  // Adds a file of one letter; counts how often its bytes had to be made.
  Json add(BundleWriter& writer, const std::string& path, char letter) {
    return writer.add_file(path, [&](const BundleWriter::Sink& sink) {
      ++made_;
      sink(std::vector<std::uint8_t>(1000, static_cast<std::uint8_t>(letter)));
      return Json(std::string("note ") + letter);
    });
  }

  fs::path folder_, out_;
  int made_ = 0;
};

TEST_F(BundleWriterTest, AppearsOnlyWhenFinished) {
  {
    BundleWriter writer(out_, "f");
    EXPECT_EQ(add(writer, "programs/text/a.bin", 'a'), Json("note a"));
    writer.add_file("b.json", "{}");
    EXPECT_FALSE(fs::exists(out_));
    Manifest facts;
    facts.palette = "optimal";
    writer.finish(std::move(facts));
  }
  EXPECT_EQ(read_file(out_ / "programs/text/a.bin", 2000), std::string(1000, 'a'));
  const Manifest manifest =
      parse_manifest(read_file(out_ / kManifestFile, 1 << 20), "manifest.json");
  ASSERT_EQ(manifest.files.size(), 2u);
  EXPECT_EQ(manifest.files[0].sha256, sha256_hex(as_bytes(std::string(1000, 'a'))));
  EXPECT_EQ(manifest.files[1].bytes, 2u);
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(journal()));
}

TEST_F(BundleWriterTest, GoesOnWhereAnEarlierRunStopped) {
  {
    BundleWriter writer(out_, "f");
    add(writer, "a", 'a');
  }
  std::ofstream(journal(), std::ios::app) << R"({"path":"b","byt)";  // A kill in mid-line.
  BundleWriter writer(out_, "f");
  EXPECT_TRUE(writer.is_resumed());
  EXPECT_EQ(add(writer, "a", 'a'), Json("note a"));
  EXPECT_EQ(made_, 1);
  add(writer, "b", 'b');
  EXPECT_EQ(made_, 2);
  writer.finish({});
  EXPECT_EQ(read_file(out_ / "b", 2000), std::string(1000, 'b'));
}

TEST_F(BundleWriterTest, RemembersWhatStandsInNoFile) {
  int measured = 0;
  const auto measure = [&] { return Json(++measured); };
  {
    BundleWriter writer(out_, "f");
    EXPECT_EQ(writer.remember("calibration", measure), Json(1));
  }
  BundleWriter writer(out_, "f");
  EXPECT_EQ(writer.remember("calibration", measure), Json(1));
  EXPECT_EQ(writer.remember("another", measure), Json(2));
  EXPECT_TRUE(writer.files().empty());
}

TEST_F(BundleWriterTest, MakesAFileAgainWhoseBytesChanged) {
  {
    BundleWriter writer(out_, "f");
    add(writer, "a", 'a');
  }
  std::fstream(partial() / "a") << "X";
  BundleWriter writer(out_, "f");
  add(writer, "a", 'a');
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(read_file(partial() / "a", 2000), std::string(1000, 'a'));
}

TEST_F(BundleWriterTest, RefusesOtherOptionsAnExistingNameAndASecondWriter) {
  {
    BundleWriter writer(out_, "f");
    add(writer, "a", 'a');
    EXPECT_THROW(BundleWriter(out_, "f"), Error);
  }
  EXPECT_THROW(BundleWriter(out_, "g"), Error);
  fs::create_directory(out_);
  EXPECT_THROW(BundleWriter(out_, "f"), Error);
}

TEST_F(BundleWriterTest, AFailedFileLeavesNothingBehind) {
  BundleWriter writer(out_, "f");
  EXPECT_THROW(writer.add_file("a",
                               [](const BundleWriter::Sink& sink) -> Json {
                                 sink(std::vector<std::uint8_t>(10));
                                 throw Error(ErrorCode::kCorruptData, "w", "bad");
                               }),
               Error);
  EXPECT_TRUE(fs::is_empty(partial()));
}

TEST(BackgroundSink, KeepsTheOrderAndHandsOnErrors) {
  std::string seen;
  BackgroundSink sink([&](Bytes bytes) { seen += as_text(bytes); }, 4);
  for (const char* text : {"ab", "cdefgh", "", "i"}) {
    const Bytes bytes = as_bytes(text);
    sink.push({bytes.begin(), bytes.end()});
  }
  sink.finish();
  EXPECT_EQ(seen, "abcdefghi");

  BackgroundSink broken([](Bytes) { throw Error(ErrorCode::kUnavailable, "disk", "full"); }, 4);
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) broken.push(std::vector<std::uint8_t>(3));
        broken.finish();
      },
      Error);
}

}  // namespace
}  // namespace clefkit
