#include "clefkit/model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/safetensors/safetensors_file.h"
#include "clefkit/safetensors/safetensors_writer.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fs::path kGolden = fs::path(CLEFKIT_SOURCE_DIR) / "tests/golden/checkpoints";
constexpr char kUpProjection[] = "model.language_model.layers.1.mlp.up_proj.weight";
constexpr char kNorm[] = "model.language_model.layers.1.input_layernorm.weight";

// A copy of the micro checkpoint to be damaged.
class DamagedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() /
            fmt::format("clefkit_checkpoint_{}_{}", ::getpid(),
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(path_);
    fs::copy(kGolden / "micro", path_);
  }
  void TearDown() override { fs::remove_all(path_); }

  // Rewrites a file with other declarations; the weights become zeros.
  void redeclare(const std::string& file,
                 const std::function<void(std::vector<TensorInfo>&)>& edit) {
    std::vector<TensorInfo> infos;
    const SafetensorsFile original(path_ / file);
    for (const TensorView& tensor : original.tensors()) {
      infos.push_back({tensor.name, tensor.dtype, tensor.shape});
    }
    edit(infos);
    SafetensorsWriter writer(path_ / file, infos);
    writer.write(std::vector<std::uint8_t>(writer.layout().data_bytes));
    writer.commit();
  }
  void redeclare_tensor(const std::string& name, const std::function<void(TensorInfo&)>& edit) {
    redeclare("model.safetensors", [&](std::vector<TensorInfo>& infos) {
      for (TensorInfo& info : infos) {
        if (info.name == name) edit(info);
      }
    });
  }

  std::string open_error() {
    try {
      open_checkpoint(path_);
    } catch (const Error& error) {
      return fmt::format("{} {}", to_string(error.code()), error.what());
    }
    return "none";
  }

  fs::path path_;
};

TEST(Checkpoint, OpensTheMicroCheckpoint) {
  const Model model = open_checkpoint(kGolden / "micro/");

  EXPECT_EQ(model.name, "micro");
  EXPECT_EQ(model.weights.size(), 89u + 86u);  // The headers' entries less their metadata.
  EXPECT_EQ(model.tensor("lm_head.weight").bytes.size(), 768u * 64 * 2);
  EXPECT_EQ(model.tensor("prior_logit_scale").element_count(), 1u);
  EXPECT_THAT(model.tokenizer_json, StartsWith("{\n  \"version\""));
  EXPECT_THAT(model.tokenizer_config_json, HasSubstr("Qwen2Tokenizer"));
  EXPECT_THAT(model.processor_config_json, HasSubstr("Qwen2VLImageProcessor"));
}

TEST(Checkpoint, TiedEmbeddingsServeAsHeadTable) {
  const Model model = open_checkpoint(kGolden / "tied");
  EXPECT_EQ(model.tensor("lm_head.weight").bytes.data(),
            model.tensor("model.language_model.embed_tokens.weight").bytes.data());
}

TEST(Checkpoint, ViewsOutliveAMove) {
  Model first = open_checkpoint(kGolden / "micro");
  const std::uint8_t* const bytes = first.tensor(kNorm).bytes.data();
  const Model second = std::move(first);
  EXPECT_EQ(second.tensor(kNorm).bytes.data(), bytes);
}

TEST(Checkpoint, NamesATensorItDoesNotHave) {
  const Model model = open_checkpoint(kGolden / "micro");
  try {
    model.weight("absent.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("has no tensor absent.weight"));
  }
}

TEST(Checkpoint, ReportsAnAbsentDirectory) {
  EXPECT_THROW(open_checkpoint(kGolden / "nowhere"), Error);
  EXPECT_THROW(open_model_files(kGolden / "micro/config.json"), Error);
}

TEST_F(DamagedCheckpoint, OpensWithoutDamage) { EXPECT_EQ(open_error(), "none"); }

TEST_F(DamagedCheckpoint, NamesTheAbsentFile) {
  for (const char* file : {"config.json", "joint_head_config.json", "tokenizer.json",
                           "processor_config.json", "joint_head.safetensors"}) {
    fs::rename(path_ / file, path_ / "aside");
    EXPECT_THAT(open_error(), AllOf(StartsWith("not_found"), HasSubstr(file)));
    fs::rename(path_ / "aside", path_ / file);
  }
  fs::remove(path_ / "model.safetensors");
  EXPECT_THAT(open_error(), StartsWith("not_found"));
}

TEST_F(DamagedCheckpoint, ModelFilesNeedNoWeights) {
  fs::remove(path_ / "model.safetensors");
  fs::remove(path_ / "joint_head.safetensors");
  fs::remove(path_ / "tokenizer_config.json");
  const ModelFiles files = open_model_files(path_);
  EXPECT_EQ(files.config.text.hidden_size, 64u);
  EXPECT_EQ(files.tokenizer_config_json, "");
}

TEST_F(DamagedCheckpoint, NamesTheTruncatedFile) {
  for (const char* file : {"model.safetensors", "joint_head.safetensors"}) {
    const auto size = fs::file_size(path_ / file);
    fs::resize_file(path_ / file, size - 1);
    EXPECT_THAT(open_error(), AllOf(StartsWith("corrupt_data"), HasSubstr(file)));
    fs::resize_file(path_ / file, 5);
    EXPECT_THAT(open_error(), AllOf(StartsWith("corrupt_data"), HasSubstr(file)));
    fs::remove(path_ / file);
    fs::copy(kGolden / "micro" / file, path_ / file);
  }
}

TEST_F(DamagedCheckpoint, NamesTheMissingTensor) {
  redeclare("model.safetensors", [](std::vector<TensorInfo>& infos) {
    std::erase_if(infos, [](const TensorInfo& info) { return info.name == kNorm; });
  });
  EXPECT_THAT(open_error(), AllOf(StartsWith("corrupt_data"), HasSubstr(kNorm),
                                  EndsWith("is missing, expected BF16 or F32 of shape [64]")));
}

TEST_F(DamagedCheckpoint, NamesTheTensorTooMany) {
  redeclare("model.safetensors", [](std::vector<TensorInfo>& infos) {
    infos.push_back({"model.language_model.layers.4.mlp.up_proj.weight", DType::kBF16, {1}});
  });
  EXPECT_THAT(open_error(), HasSubstr("model.safetensors: model.language_model.layers.4.mlp.up_proj"
                                      ".weight: the tensor has no place in this architecture"));
}

TEST_F(DamagedCheckpoint, RejectsABackboneTensorInTheHeadsFile) {
  redeclare("joint_head.safetensors", [](std::vector<TensorInfo>& infos) {
    infos.push_back({"lm_head.weight", DType::kBF16, {768, 64}});
  });
  EXPECT_THAT(open_error(), HasSubstr("joint_head.safetensors: lm_head.weight: the tensor has no"));
}

TEST_F(DamagedCheckpoint, IgnoresMultiTokenPrediction) {
  redeclare("model.safetensors", [](std::vector<TensorInfo>& infos) {
    infos.push_back({"mtp.fc.weight", DType::kBF16, {64, 128}});
  });
  EXPECT_EQ(open_error(), "none");
  EXPECT_FALSE(open_checkpoint(path_).weights.contains("mtp.fc.weight"));
}

TEST_F(DamagedCheckpoint, NamesTheWrongShape) {
  redeclare_tensor(kUpProjection, [](TensorInfo& info) { info.shape = {64, 160}; });
  EXPECT_THAT(open_error(), AllOf(StartsWith("corrupt_data"), HasSubstr(kUpProjection),
                                  EndsWith("shape [64, 160], expected [160, 64]")));
}

TEST_F(DamagedCheckpoint, NamesTheWrongElementType) {
  redeclare_tensor(kUpProjection, [](TensorInfo& info) { info.dtype = DType::kF16; });
  EXPECT_THAT(open_error(),
              AllOf(HasSubstr(kUpProjection), EndsWith("element type F16, expected BF16")));
}

TEST_F(DamagedCheckpoint, AcceptsFloat32Norms) {
  redeclare_tensor(kNorm, [](TensorInfo& info) { info.dtype = DType::kF32; });
  EXPECT_EQ(open_error(), "none");
}

}  // namespace
}  // namespace clefkit
