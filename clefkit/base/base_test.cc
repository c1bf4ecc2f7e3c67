#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/half.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/base/sha256.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

TEST(Half, ConvertsKnownValues) {
  EXPECT_EQ(to_float(Half{0x3C00}), 1.0f);
  EXPECT_EQ(to_float(Half{0xB800}), -0.5f);
  EXPECT_EQ(to_float(Half{0x7BFF}), 65504.0f);
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_half(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_half(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_half(2049.0f).bits, 0x6800);  // A tie: to even, 2048.
  EXPECT_EQ(to_half(2051.0f).bits, 0x6802);  // A tie: to even, 2052.
  EXPECT_EQ(to_half(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(to_half(0x1.8p-24f).bits, 0x0002);
}

TEST(Half, EveryFiniteValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    if ((bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0) continue;
    ASSERT_EQ(to_half(to_float(half)), half) << bits;
  }
}

TEST(BFloat16, RoundsTiesToEvenAndKeepsNaN) {
  EXPECT_EQ(to_bfloat16(1.0f).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F808000u)).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3F818000u)).bits, 0x3F82);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7F800001u)))));
}

// The two vectors of FIPS 180-4's examples.
TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(sha256_hex(as_bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Executor, CallsEveryIndexOnceAndWorkersDoNotOverlap) {
  Executor executor(3);
  std::vector<std::atomic<int>> calls(1000);
  std::vector<std::atomic<int>> busy(3);
  executor.parallel_for(calls.size(), [&](std::size_t index, std::size_t worker) {
    ASSERT_LT(worker, 3u);
    ASSERT_EQ(busy[worker].fetch_add(1), 0);
    calls[index].fetch_add(1);
    busy[worker].fetch_sub(1);
  });
  for (const auto& count : calls) ASSERT_EQ(count.load(), 1);
}

TEST(Executor, HandsOnTheBodysException) {
  Executor executor(2);
  EXPECT_THROW(executor.parallel_for(100,
                                     [](std::size_t index, std::size_t) {
                                       if (index == 42)
                                         throw Error(ErrorCode::kCorruptData, "x", "y");
                                     }),
               Error);
}

TEST(ComputeContext, StopsWhenCancelled) {
  Executor executor(2);
  CancelToken cancel;
  const ComputeContext context{executor, &cancel};
  std::atomic<int> calls = 0;
  try {
    context.parallel_for(100000, [&](std::size_t, std::size_t) {
      if (calls.fetch_add(1) == 10) cancel.cancel();
    });
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_LT(calls.load(), 1000);
}

TEST(StageTimes, CountsTheOuterTimerOnly) {
  StageTimes times;
  {
    const StageTimer outer(&times, "head");
    const StageTimer inner(&times, "linear");
  }
  { const StageTimer alone(&times, "attention"); }
  { const StageTimer nothing(nullptr, "linear"); }
  ASSERT_EQ(times.seconds().size(), 2u);
  EXPECT_EQ(times.seconds()[0].first, "head");
  EXPECT_EQ(times.seconds()[1].first, "attention");
  EXPECT_EQ(times.of("linear"), 0.0);
}

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "clefkit-base-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Files() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Files, AtomicFileAppearsOnlyWhenCommitted) {
  const fs::path path = folder_ / "a";
  {
    AtomicFile file(path);
    file.write("hello");
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  write_file(path, "hello");
  EXPECT_EQ(read_file(path, 5), "hello");
  EXPECT_THROW(read_file(path, 4), Error);
}

TEST_F(Files, AtomicDirectoryAppearsOnlyWhenCommitted) {
  const fs::path path = folder_ / "above" / "a";
  {
    AtomicDirectory directory(path / "");  // A slash at the end changes nothing.
    write_file(directory.partial() / "b", "hello");
    EXPECT_EQ(directory.path(), path);
    EXPECT_EQ(directory.partial(), folder_ / "above" / "a.partial");
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "above"));
  fs::create_directory(path);  // An empty one may be there.
  {
    AtomicDirectory directory(path);
    write_file(directory.partial() / "b", "hello");
    directory.commit();
  }
  EXPECT_EQ(read_file(path / "b", 5), "hello");
  EXPECT_FALSE(fs::exists(folder_ / "above" / "a.partial"));
}

TEST_F(Files, AtomicDirectoryLeavesWhatIsThereAlone) {
  const auto refusal = [](const fs::path& path) {
    const Error error = error_of([&] { AtomicDirectory{path}; });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  write_file(folder_ / "file", "mine");
  EXPECT_THAT(refusal(folder_), testing::HasSubstr("already exists"));
  EXPECT_THAT(refusal(folder_ / "file"), testing::HasSubstr("already exists"));
  fs::create_directory(folder_ / "a.partial");
  EXPECT_THAT(refusal(folder_ / "a"), testing::HasSubstr("a.partial: already exists"));
  for (const char* name : {"", "/", ".", "a/.."}) {
    EXPECT_THAT(refusal(name), testing::HasSubstr("the name of a new directory"));
  }
  EXPECT_TRUE(fs::exists(folder_ / "a.partial"));
  EXPECT_EQ(read_file(folder_ / "file", 4), "mine");
}

TEST_F(Files, MappedFileNamesAMissingFile) {
  try {
    const MappedFile file(folder_ / "absent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), testing::HasSubstr("absent"));
  }
}

TEST_F(Files, HashesAFileInSteps) {
  // Longer than two steps, so that releasing pages behind the reader is exercised.
  const std::string text((std::size_t{20} << 20) + 12345, 'x');
  write_file(folder_ / "long", text);
  std::uint64_t seen = 0;
  EXPECT_EQ(sha256_of_file(folder_ / "long", [&](std::uint64_t bytes) { seen += bytes; }),
            sha256_hex(as_bytes(text)));
  EXPECT_EQ(seen, text.size());
}

TEST_F(Files, MapsAnEmptyFileAndRefusesAFolder) {
  write_file(folder_ / "empty", "");
  EXPECT_TRUE(MappedFile(folder_ / "empty").bytes().empty());
  EXPECT_THROW(MappedFile{folder_}, Error);
}

}  // namespace
}  // namespace clefkit
