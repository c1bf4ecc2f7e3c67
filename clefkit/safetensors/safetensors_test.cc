#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/safetensors/safetensors_file.h"
#include "clefkit/safetensors/safetensors_writer.h"
#include "clefkit/safetensors/sharded_safetensors.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const fs::path kMicro = fs::path(CLEFKIT_SOURCE_DIR) / "tests/golden/checkpoints/micro";

// A file with this header, padded to 8 bytes, and this many bytes of data, on an aligned address.
struct FileImage {
  FileImage(std::string_view header, std::size_t data_bytes) {
    std::string text(8, '\0');
    text += header;
    text.resize(align_up(text.size(), 8), ' ');
    store_le<std::uint64_t>(reinterpret_cast<std::uint8_t*>(text.data()), text.size() - 8);
    text.resize(text.size() + data_bytes, '\x01');
    words.resize(text.size() / 8 + 1);
    std::memcpy(words.data(), text.data(), text.size());
    size = text.size();
  }
  Bytes bytes() const { return {reinterpret_cast<const std::uint8_t*>(words.data()), size}; }

  std::vector<std::uint64_t> words;
  std::size_t size = 0;
};

// The error's text, or "none".
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::string parse_error(std::string_view header, std::size_t data_bytes) {
  const FileImage image(header, data_bytes);
  return error_of([&] { parse_safetensors(image.bytes(), "f"); });
}

class Directory : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() /
            fmt::format("clefkit_safetensors_{}_{}", ::getpid(),
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(path_);
  }
  void TearDown() override { fs::remove_all(path_); }

  // One BF16 tensor of two elements for each name.
  void write_shard(const std::string& file, const std::vector<std::string>& names) {
    std::vector<TensorInfo> tensors;
    for (const std::string& name : names) tensors.push_back({name, DType::kBF16, {2}});
    SafetensorsWriter writer(path_ / file, tensors);
    writer.write(as_bytes(std::string(4 * names.size(), 'x')));
    writer.commit();
  }
  void write_index(std::string_view weight_map) {
    write_file(path_ / "model.safetensors.index.json",
               fmt::format(R"({{"metadata":{{}},"weight_map":{}}})", weight_map));
  }
  std::string open_error() {
    return error_of([&] { open_sharded_safetensors(path_); });
  }

  fs::path path_;
};

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirBytes) {
  const FileImage image(
      R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
      R"("__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})",
      11);

  const SafetensorsHeader header = parse_safetensors(image.bytes(), "f");

  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].dtype, DType::kF32);
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(2, 1));
  EXPECT_EQ(header.tensors[0].element_count(), 2u);
  EXPECT_EQ(header.tensors[1].bytes.data() - image.bytes().data(),
            static_cast<std::ptrdiff_t>(image.size - 3));
  EXPECT_EQ(header.metadata.at("k"), "v");
}

TEST(Safetensors, ReadsScalarsAndEmptyTensors) {
  const FileImage image(R"({"none":{"dtype":"BF16","shape":[0,7],"data_offsets":[0,0]},)"
                        R"("one":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}})",
                        2);

  const SafetensorsHeader header = parse_safetensors(image.bytes(), "f");

  EXPECT_EQ(header.tensors[0].element_count(), 0u);
  EXPECT_EQ(header.tensors[1].element_count(), 1u);
}

TEST(Safetensors, RejectsWhatIsNoHeader) {
  EXPECT_THAT(error_of([] { parse_safetensors(as_bytes("1234567"), "f"); }),
              HasSubstr("7 bytes, expected at least the 8"));
  EXPECT_THAT(error_of([] {
                parse_safetensors(as_bytes({"\x09\0\0\0\0\0\0\0{}", 10}), "f");
              }),
              HasSubstr("header of 9 bytes, but only 2 follow"));
  EXPECT_THAT(
      error_of([] { parse_safetensors(as_bytes("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "f"); }),
      HasSubstr("expected at most"));
  EXPECT_THAT(parse_error("[]", 0), HasSubstr("expected an object"));
  EXPECT_THAT(parse_error("{", 0), HasSubstr("f: "));
  EXPECT_THAT(parse_error(R"({"a":1})", 0), HasSubstr("f: a: found a number"));
  EXPECT_THAT(parse_error(R"({"__metadata__":{"k":1}})", 0), HasSubstr("no string"));
}

TEST(Safetensors, RejectsBadEntries) {
  EXPECT_THAT(parse_error(R"({"a":{"shape":[1],"data_offsets":[0,2]}})", 2), HasSubstr("dtype"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"F7","shape":[1],"data_offsets":[0,2]}})", 2),
              HasSubstr("element type `F7` is not known"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"BF16","shape":[-1],"data_offsets":[0,2]}})", 2),
              HasSubstr("no unsigned integer"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[2,0]}})", 2),
              HasSubstr("not a begin and an end"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0]}})", 2),
              HasSubstr("not a begin and an end"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,4]}})", 4),
              HasSubstr("f: a: 4 bytes, expected 6 for BF16 of shape [3]"));
  // 2^33 · 2^31 · 2 bytes is 2^65, which wraps to 0 in 64 bits.
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"BF16","shape":[8589934592,2147483648],)"
                          R"("data_offsets":[0,0]}})",
                          0),
              HasSubstr("expected more than 2^64"));
}

TEST(Safetensors, RejectsDuplicateNames) {
  EXPECT_NE(parse_error(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                        2),
            "none");
}

TEST(Safetensors, RejectsDataThatTheTensorsDoNotTile) {
  const std::string one = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  EXPECT_THAT(parse_error(one + "}", 1), HasSubstr("ends at byte 2 of the data, but the file holds"
                                                   " only 1"));
  EXPECT_THAT(parse_error(one + "}", 3), HasSubstr("1 bytes follow the last tensor"));
  EXPECT_THAT(parse_error(one + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3),
              HasSubstr("f: b: begins at byte 1 of the data, expected 2"));
  EXPECT_THAT(parse_error(one + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", 4),
              HasSubstr("begins at byte 3 of the data, expected 2"));
}

TEST(Safetensors, RejectsDataThatIsNotAligned) {
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                          5),
              HasSubstr("f: b: data begins at byte 1, which is not aligned for F32"));
}

TEST(SafetensorsFile, StaysValidWhenMoved) {
  SafetensorsFile first(kMicro / "joint_head.safetensors");
  const auto* const bytes = first.find("prior_logit_scale")->bytes.data();
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(second.find("prior_logit_scale")->bytes.data(), bytes);
  EXPECT_EQ(second.find("absent"), nullptr);
}

// The two files were written by the format's own library.
TEST_F(Directory, WriterReproducesTheGoldenFiles) {
  for (const char* name : {"model.safetensors", "joint_head.safetensors"}) {
    const SafetensorsFile golden(kMicro / name);
    std::vector<TensorInfo> infos;
    for (const TensorView& tensor : golden.tensors()) {
      infos.insert(infos.begin(), {tensor.name, tensor.dtype, tensor.shape});
    }
    SafetensorsWriter writer(path_ / name, infos, golden.metadata());
    for (const TensorInfo& tensor : writer.layout().tensors) {
      writer.write(golden.find(tensor.name)->bytes);
    }
    writer.commit();

    EXPECT_EQ(writer.layout().file_bytes(), fs::file_size(kMicro / name));
    EXPECT_TRUE(read_file(path_ / name, 1 << 20) == read_file(kMicro / name, 1 << 20)) << name;
  }
}

TEST(SafetensorsLayout, PlacesWiderTypesFirstAndPadsTheHeader) {
  const SafetensorsLayout layout = plan_safetensors(
      {{"a", DType::kBF16, {1}}, {"b", DType::kF32, {}}, {"c", DType::kF32, {2, 0}}}, {});

  EXPECT_EQ(layout.tensors[0].name, "b");
  EXPECT_EQ(layout.tensors[1].name, "c");
  EXPECT_EQ(layout.tensors[2].name, "a");
  EXPECT_EQ(layout.head.size() % 8, 0u);
  EXPECT_EQ(layout.data_bytes, 6u);
  EXPECT_THAT(layout.head.substr(8),
              HasSubstr(R"({"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"));
}

TEST_F(Directory, WriterLeavesNothingWithoutCommit) {
  {
    SafetensorsWriter writer(path_ / "x.safetensors", {{"a", DType::kBF16, {1}}});
    writer.write(as_bytes("ab"));
  }
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(Directory, OpensShardsInTheOrderOfTheirNames) {
  write_shard("m-2.safetensors", {"b"});
  write_shard("m-1.safetensors", {"c", "a"});
  write_index(R"({"b":"m-2.safetensors","a":"m-1.safetensors","c":"m-1.safetensors"})");

  const auto shards = open_sharded_safetensors(path_);

  ASSERT_EQ(shards.size(), 2u);
  EXPECT_EQ(shards[0].tensors().size(), 2u);
  EXPECT_EQ(shards[1].tensors()[0].name, "b");
}

TEST_F(Directory, OpensASingleFileWithoutIndex) {
  EXPECT_THAT(open_error(), HasSubstr("holds neither model.safetensors nor"));
  write_shard("model.safetensors", {"a"});
  EXPECT_EQ(open_sharded_safetensors(path_).size(), 1u);
}

TEST_F(Directory, RejectsAnIndexThatLeavesTheDirectory) {
  for (const char* name : {"../m.safetensors", "/m.safetensors", "..", "", "a/b", R"(a\\b)"}) {
    write_index(fmt::format(R"({{"a":"{}"}})", name));
    EXPECT_THAT(open_error(), AllOf(HasSubstr("index.json: a is placed in"),
                                    HasSubstr("expected a file name without folders")))
        << name;
  }
}

TEST_F(Directory, RejectsAnIndexThatIsNone) {
  write_index("[]");
  EXPECT_THAT(open_error(), HasSubstr("no object `weight_map`"));
  write_index("{}");
  EXPECT_THAT(open_error(), HasSubstr("`weight_map` is empty"));
  write_index(R"({"a":1})");
  EXPECT_THAT(open_error(), HasSubstr("a is placed in 1"));
}

TEST_F(Directory, NamesTheAbsentShard) {
  write_index(R"({"a":"m-1.safetensors"})");
  EXPECT_THAT(open_error(), HasSubstr("m-1.safetensors: the file is absent, but "
                                      "model.safetensors.index.json names it"));
}

TEST_F(Directory, NamesTheTensorOnWhichIndexAndShardDisagree) {
  write_shard("m-1.safetensors", {"a", "b"});
  write_shard("m-2.safetensors", {"c"});
  write_index(R"({"a":"m-1.safetensors","c":"m-2.safetensors"})");
  EXPECT_THAT(open_error(), HasSubstr("m-1.safetensors: holds b, which the index does not name"));
  write_index(R"({"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-2.safetensors"})");
  EXPECT_THAT(open_error(),
              HasSubstr("m-1.safetensors: holds b, which the index places in m-2.safetensors"));
  write_index(
      R"({"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors","d":"m-2.safetensors"})");
  EXPECT_THAT(open_error(),
              HasSubstr("m-2.safetensors: does not hold d, which the index places in it"));
}

TEST_F(Directory, NamesTheTruncatedShard) {
  write_shard("m-1.safetensors", {"a", "b"});
  write_index(R"({"a":"m-1.safetensors","b":"m-1.safetensors"})");
  fs::resize_file(path_ / "m-1.safetensors", fs::file_size(path_ / "m-1.safetensors") - 1);
  EXPECT_THAT(open_error(), HasSubstr("m-1.safetensors: b: ends at byte 8 of the data, but the "
                                      "file holds only 7"));
}

TEST(FindNonFinite, FindsTheFirstInAnyPlace) {
  for (const std::size_t count : {1u, 3u, 4095u, 4096u, 4097u, 9000u}) {
    std::vector<float> values(count, -3.4e38f);
    const auto bytes = [&] {
      return Bytes(reinterpret_cast<const std::uint8_t*>(values.data()), count * sizeof(float));
    };
    EXPECT_EQ(find_non_finite(DType::kF32, bytes()), std::nullopt);
    values.back() = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(find_non_finite(DType::kF32, bytes()), count - 1);
    values.front() = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(find_non_finite(DType::kF32, bytes()), 0u);
  }
}

TEST(FindNonFinite, KnowsTheHalfTypesAndLeavesIntegersAlone) {
  // Little-endian 0x7F7F, the largest BF16 (a NaN as FP16), then 0x7F80, infinity.
  const std::array<std::uint8_t, 4> bytes{0x7F, 0x7F, 0x80, 0x7F};
  EXPECT_EQ(find_non_finite(DType::kBF16, bytes), 1u);
  EXPECT_EQ(find_non_finite(DType::kF16, bytes), 0u);
  EXPECT_EQ(find_non_finite(DType::kI64, bytes), std::nullopt);
  EXPECT_EQ(find_non_finite(DType::kBF16, {}), std::nullopt);
}

}  // namespace
}  // namespace clefkit
