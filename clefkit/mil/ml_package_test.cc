#include "clefkit/mil/ml_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

#include "clefkit/base/error_of.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/mil/example_program.h"
#include "clefkit/mil/parser.h"

namespace clefkit::mil {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MlPackageTest : public testing::Test {
 protected:
  MlPackageTest() {
    std::string pattern = (fs::temp_directory_path() / "clefkit-package-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write_file(folder_ / "bundle.bin", as_text(example_weights()));
  }
  ~MlPackageTest() override { fs::remove_all(folder_); }

  PackagedWeights write(const char* name, const char* weights = "bundle.bin") const {
    return write_ml_package(folder_ / name, program_, folder_ / weights, {});
  }
  std::string file(const fs::path& path) const { return read_file(folder_ / path, 1 << 20); }
  // Every file and directory by its path, in the order of the paths.
  std::set<std::string> contents(const char* name) const {
    std::set<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / name)) {
      paths.insert(entry.path().lexically_relative(folder_ / name).string());
    }
    return paths;
  }
  Error refusal(const char* name, const char* weights = "bundle.bin") const {
    return error_of([&] { write(name, weights); });
  }

  fs::path folder_;
  Program program_ = parse_program(kExampleText, "test");
};

TEST_F(MlPackageTest, HasTheLayoutThatCoreMlReads) {
  EXPECT_EQ(write("a.mlpackage"), PackagedWeights::kLinked);
  const std::string data = "Data/com.apple.CoreML";
  EXPECT_EQ(contents("a.mlpackage"),
            (std::set<std::string>{"Data", data, data + "/model.mlmodel", data + "/weights",
                                   data + "/weights/weight.bin", "Manifest.json"}));
  EXPECT_EQ(file("a.mlpackage/" + data + "/model.mlmodel"), to_ml_model(program_, {}));
  EXPECT_EQ(file("a.mlpackage/" + data + "/weights/weight.bin"), as_text(example_weights()));

  const Json manifest = parse_json(file("a.mlpackage/Manifest.json"), "manifest", {});
  EXPECT_EQ(manifest.find("fileFormatVersion")->string(), "1.0.0");
  const Json::Object& items = manifest.find("itemInfoEntries")->members();
  ASSERT_EQ(items.size(), 2);
  EXPECT_EQ(manifest.find("rootModelIdentifier")->string(), items[0].first);
  EXPECT_THAT(items[0].first,
              testing::MatchesRegex("[0-9a-f]+-[0-9a-f]+-8[0-9a-f]+-8[0-9a-f]+-[0-9a-f]+"));
  EXPECT_EQ(items[0].first.size(), 36);
  EXPECT_NE(items[0].first, items[1].first);
  EXPECT_EQ(items[0].second.find("path")->string(), "com.apple.CoreML/model.mlmodel");
  EXPECT_EQ(items[1].second.find("path")->string(), "com.apple.CoreML/weights");
  EXPECT_EQ(items[1].second.find("author")->string(), "com.apple.CoreML");
}

TEST_F(MlPackageTest, SharesTheWeightFile) {
  write("a.mlpackage");
  EXPECT_TRUE(fs::equivalent(folder_ / "bundle.bin", packaged_weights(folder_ / "a.mlpackage")));
  EXPECT_EQ(fs::hard_link_count(folder_ / "bundle.bin"), 2);
}

TEST_F(MlPackageTest, FollowsSymbolicLinksRatherThanWritingThem) {
  fs::create_symlink("bundle.bin", folder_ / "link.bin");
  EXPECT_EQ(write("a.mlpackage", "link.bin"), PackagedWeights::kLinked);
  const fs::path weights = packaged_weights(folder_ / "a.mlpackage");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(weights)));
  EXPECT_TRUE(fs::equivalent(folder_ / "bundle.bin", weights));
}

TEST_F(MlPackageTest, IsTheSameForTheSameProgram) {
  write("a.mlpackage");
  write("b.mlpackage");
  EXPECT_EQ(contents("a.mlpackage"), contents("b.mlpackage"));
  for (const char* path : {"Manifest.json", "Data/com.apple.CoreML/model.mlmodel"}) {
    EXPECT_EQ(file(fs::path("a.mlpackage") / path), file(fs::path("b.mlpackage") / path));
  }
  program_.functions[0].opset = "ios26";
  write("c.mlpackage");
  EXPECT_NE(file("a.mlpackage/Manifest.json"), file("c.mlpackage/Manifest.json"));
}

TEST_F(MlPackageTest, HasNoWeightsWhenTheProgramHasNone) {
  program_ = parse_program(
      "program(1.3)\n[buildInfo = dict<string, string>({})]\n{\n"
      "func main<ios18>(tensor<fp16, [2]> x) {\n"
      "tensor<fp16, [2]> y = relu(x = x)[name = string(\"y\")];\n} -> (y);\n}\n",
      "test");
  EXPECT_EQ(write("a.mlpackage", "absent.bin"), PackagedWeights::kNone);
  EXPECT_EQ(contents("a.mlpackage"),
            (std::set<std::string>{"Data", "Data/com.apple.CoreML",
                                   "Data/com.apple.CoreML/model.mlmodel", "Manifest.json"}));
}

TEST_F(MlPackageTest, LeavesNothingBehindWhenItFails) {
  const Error missing = refusal("a.mlpackage", "absent.bin");
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.what(), HasSubstr("absent.bin: no such file, expected the weights"));
  const Error directory = refusal("a.mlpackage", ".");
  EXPECT_EQ(directory.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(directory.what(), HasSubstr("is no file"));
  fs::create_directory(folder_ / "b.mlpackage");
  write_file(folder_ / "b.mlpackage" / "mine", "mine");
  EXPECT_THAT(refusal("b.mlpackage").what(), HasSubstr("already exists"));
  program_.functions[0].opset = "ios1";
  EXPECT_EQ(refusal("c.mlpackage").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(contents(""), (std::set<std::string>{"b.mlpackage", "b.mlpackage/mine", "bundle.bin"}));
}

}  // namespace
}  // namespace clefkit::mil
