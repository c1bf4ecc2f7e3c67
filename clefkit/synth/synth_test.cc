#include "clefkit/synth/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/base/sha256.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/synth/byte_tokenizer.h"
#include "clefkit/synth/checkpoint_files.h"
#include "clefkit/synth/release_files.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fs::path kGolden = fs::path(CLEFKIT_SOURCE_DIR) / "tests/golden/checkpoints";

std::string hash_start(std::string_view text) { return sha256_hex(as_bytes(text)).substr(0, 16); }

ModelConfig config_of(std::string_view preset) {
  const ConfigTexts texts = preset_config(preset);
  return parse_model_config(texts.config_json, texts.head_config_json);
}

// Sizes and hashes of the release's files: model.md 1.1.
TEST(ClefFlashPreset, HasTheReleasesConfigurationFiles) {
  const ConfigTexts texts = preset_config("clef-flash");
  EXPECT_EQ(hash_start(texts.config_json), "66f87f6fb2616b46");
  EXPECT_EQ(hash_start(texts.head_config_json), "77efe959a38b5b17");
  EXPECT_EQ(hash_start(generation_config_json(248044)), "45707f8467bf4e54");
  EXPECT_EQ(hash_start(processor_config_json(config_of("clef-flash").vision)), "d89ef49ce9cd37fb");
  EXPECT_EQ(hash_start(tokenizer_config_json()), "91a08f825d370d08");
}

TEST(ClefFlashPreset, HasTheReleasesShardsAndIndex) {
  const CheckpointFiles files = plan_checkpoint_files(config_of("clef-flash"));

  ASSERT_EQ(files.weight_files.size(), 5u);
  EXPECT_EQ(files.weight_files[0].name, "model-00001-of-00004.safetensors");
  EXPECT_EQ(files.weight_files[0].layout.file_bytes(), 4942706120u);
  EXPECT_EQ(files.weight_files[1].layout.file_bytes(), 4987757928u);
  EXPECT_EQ(files.weight_files[2].layout.file_bytes(), 4954810240u);
  EXPECT_EQ(files.weight_files[3].layout.file_bytes(), 3934446832u);
  EXPECT_EQ(files.weight_files[4].name, "joint_head.safetensors");
  EXPECT_EQ(files.weight_files[4].layout.file_bytes(), 243538016u);
  EXPECT_EQ(files.index_json.size(), 69253u);
  EXPECT_EQ(hash_start(files.index_json), "941305ff9f77551e");
}

std::uint64_t parameters_of(std::string_view preset) {
  std::uint64_t bytes = 0;
  for (const WeightFile& file : plan_checkpoint_files(config_of(preset)).weight_files) {
    bytes += file.layout.data_bytes;
  }
  return bytes / 2;
}

TEST(Presets, HaveTheirSizes) {
  EXPECT_EQ(parameters_of("clef"), 54713457120u / 2 + 128056324u);  // Model.md 11.
  EXPECT_NEAR(static_cast<double>(parameters_of("nano")), 4e6, 0.3e6);
  EXPECT_LT(parameters_of("tiny"), 1000000u);
}

TEST(Presets, RejectAnUnknownName) {
  try {
    preset_config("huge");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "preset: `huge`, expected one of clef-flash, clef, nano, tiny");
  }
}

TEST(Presets, DefaultHeadHasTheReleasesProportions) {
  EXPECT_EQ(default_head_config_json(4096), preset_config("clef-flash").head_config_json);
  EXPECT_EQ(default_head_config_json(5120), preset_config("clef").head_config_json);
}

// Micro's file has the release's pipeline and added tokens, from id 700, but was trained: its
// affixes are null and its pre-tokenizer trims no offsets, where the release (model.md 9.3) has
// empty affixes and trims them.
TEST(ByteTokenizer, HasTheReleasesAddedTokensAndPipeline) {
  std::string golden_text = read_file(kGolden / "micro/tokenizer.json", 1 << 20);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t place = golden_text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    golden_text.replace(place, from.size(), to);
  };
  replace("prefix\": null", "prefix\": \"\"");
  replace("suffix\": null", "suffix\": \"\"");
  replace("\"trim_offsets\": false", "\"trim_offsets\": true");
  const Json golden = parse_json(golden_text, "golden", {});
  const Json ours = parse_json(byte_tokenizer_json(700), "ours", {});

  const auto expect_equal = [](const Json& left, const Json& right) {
    ASSERT_EQ(left.members().size(), right.members().size());
    for (std::size_t index = 0; index < left.members().size(); ++index) {
      const auto& [key, value] = left.members()[index];
      EXPECT_EQ(key, right.members()[index].first);
      if (key == "vocab" || key == "merges" || key == "model") continue;
      EXPECT_EQ(to_string(value), to_string(right.members()[index].second)) << key;
    }
  };
  expect_equal(ours, golden);
  expect_equal(*ours.find("model"), *golden.find("model"));
}

TEST(ByteTokenizer, HasTheBytesOfTheReleaseAndNoGap) {
  const Json json = parse_json(byte_tokenizer_json(700), "ours", {});
  const Json::Object& vocabulary = json.find("model")->find("vocab")->members();
  ASSERT_EQ(vocabulary.size(), 700u);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    EXPECT_EQ(vocabulary[id].second.as_uint64(), id);
  }
  // Ids of model.md 3.2 and 9, and GPT-2's table.
  EXPECT_EQ(vocabulary[13].first, ".");
  EXPECT_EQ(vocabulary[15].first, "0");
  EXPECT_EQ(vocabulary[198].first, "\u010A");  // Line feed.
  EXPECT_EQ(vocabulary[220].first, "\u0120");  // Space.
}

class Synth : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() /
            fmt::format("clefkit_synth_{}_{}", ::getpid(),
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  void TearDown() override { fs::remove_all(path_); }

  SynthOptions options(const std::string& name, const std::string& preset = "tiny") {
    SynthOptions result;
    result.config = preset_config(preset);
    result.output = path_ / name;
    return result;
  }
  void write(const SynthOptions& synth_options, std::size_t threads = 2) {
    Executor executor(threads);
    write_synthetic_checkpoint({.executor = executor}, synth_options);
  }
  std::string error_of(const SynthOptions& synth_options) {
    try {
      write(synth_options);
    } catch (const Error& error) {
      return fmt::format("{} {}", to_string(error.code()), error.what());
    }
    return "none";
  }
  std::string hash_of(const std::string& file) {
    return sha256_hex(as_bytes(read_file(path_ / file, 1 << 24)));
  }

  fs::path path_;
};

TEST_F(Synth, WritesCheckpointsThatOpen) {
  for (const char* preset : {"tiny", "nano"}) {
    write(options(preset, preset));
    const Model model = open_checkpoint(path_ / preset);
    EXPECT_EQ(model.config.vision_start_token_id, 265);
    EXPECT_EQ(model.tokenizer_config_json, tokenizer_config_json());
  }
  EXPECT_FALSE(fs::exists(path_ / "tiny.partial"));
}

TEST_F(Synth, WritesTheSameBytesOnEveryNumberOfThreads) {
  // More than one block in a tensor, more than one shard.
  for (const std::size_t threads : {1, 2, 3}) {
    SynthOptions synth_options = options(fmt::format("{}", threads), "nano");
    synth_options.shard_bytes = 1000000;
    write(synth_options, threads);
  }
  std::size_t shards = 0;
  for (const auto& entry : fs::directory_iterator(path_ / "1")) {
    const std::string file = entry.path().filename().string();
    shards += file.starts_with("model-");
    EXPECT_EQ(hash_of("1/" + file), hash_of("2/" + file)) << file;
    EXPECT_EQ(hash_of("1/" + file), hash_of("3/" + file)) << file;
  }
  EXPECT_GT(shards, 3u);
  EXPECT_NO_THROW(open_checkpoint(path_ / "1"));
}

// No reference: pins the bytes, so that a seed means the same checkpoint in every version.
TEST_F(Synth, KeepsTheBytesOfASeed) {
  SynthOptions synth_options = options("seven");
  synth_options.seed = 7;
  write(synth_options);
  EXPECT_EQ(hash_of("seven/model.safetensors").substr(0, 16), "3ee50d42beeec342");
  EXPECT_EQ(hash_of("seven/joint_head.safetensors").substr(0, 16), "e2bd061c2c605a73");
  write(options("zero"));
  EXPECT_NE(hash_of("zero/model.safetensors"), hash_of("seven/model.safetensors"));
}

TEST_F(Synth, ReportsProgressUpToTheTotal) {
  SynthOptions synth_options = options("out");
  std::vector<std::uint64_t> done;
  std::uint64_t total = 0;
  synth_options.progress = [&](std::uint64_t done_bytes, std::uint64_t total_bytes) {
    done.push_back(done_bytes);
    total = total_bytes;
  };
  write(synth_options);
  EXPECT_EQ(done.front(), 0u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), total);
  EXPECT_EQ(total, fs::file_size(path_ / "out/model.safetensors") +
                       fs::file_size(path_ / "out/joint_head.safetensors"));
}

TEST_F(Synth, TakesAnyConfigurationAndItsTokenizer) {
  for (const char* golden : {"micro", "tied"}) {
    SynthOptions synth_options = options(golden);
    synth_options.config = {read_file(kGolden / golden / "config.json", 1 << 20), ""};
    synth_options.tokenizer = kGolden / golden / "tokenizer.json";
    write(synth_options);
    const Model model = open_checkpoint(path_ / golden);
    EXPECT_EQ(model.config.head.width, 32u);
    EXPECT_EQ(hash_of(fmt::format("{}/tokenizer.json", golden)),
              sha256_hex(as_bytes(read_file(synth_options.tokenizer, 1 << 20))));
    EXPECT_EQ(hash_of(fmt::format("{}/generation_config.json", golden)),
              sha256_hex(as_bytes(read_file(kGolden / golden / "generation_config.json", 1000))));
  }
}

TEST_F(Synth, RejectsATokenizerThatDoesNotFit) {
  SynthOptions synth_options = options("out");
  synth_options.tokenizer = kGolden / "micro/tokenizer.json";
  EXPECT_THAT(error_of(synth_options), HasSubstr("expected ids under 320, the vocab_size"));
  write_file(path_ / "shifted.json", byte_tokenizer_json(257));
  synth_options.tokenizer = path_ / "shifted.json";
  EXPECT_THAT(error_of(synth_options),
              HasSubstr("id 266 of `<|vision_start|>`, expected 265 as in config.json"));
  write_file(path_ / "list.json", "[]");
  synth_options.tokenizer = path_ / "list.json";
  EXPECT_THAT(error_of(synth_options), StartsWith("invalid_argument"));
  synth_options.tokenizer = path_ / "absent.json";
  EXPECT_THAT(error_of(synth_options), StartsWith("not_found"));
}

TEST_F(Synth, NeedsATokenizerForUnusualIds) {
  SynthOptions synth_options = options("out");
  std::string& config = synth_options.config.config_json;
  config.replace(config.find("\"vision_end_token_id\": 266"), 26, "\"vision_end_token_id\": 267");
  EXPECT_THAT(error_of(synth_options), StartsWith("invalid_argument tokenizer: none given"));
}

TEST_F(Synth, TakesNoDirectoryThatHoldsSomething) {
  fs::create_directories(path_ / "full/inside");
  EXPECT_THAT(error_of(options("full")), HasSubstr("expected a new or an empty directory"));
  fs::create_directories(path_ / "empty");
  EXPECT_EQ(error_of(options("empty/")), "none");
}

TEST_F(Synth, LeavesNothingWhenCancelled) {
  Executor executor(2);
  CancelToken cancel;
  SynthOptions synth_options = options("out");
  synth_options.progress = [&](std::uint64_t, std::uint64_t) { cancel.cancel(); };
  EXPECT_THROW(write_synthetic_checkpoint({executor, &cancel}, synth_options), Error);
  EXPECT_TRUE(fs::is_empty(path_));
}

// A limit on file sizes makes writes fail half-way, as a full disk does.
TEST_F(Synth, LeavesNothingWhenAWriteFails) {
  struct ::rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct ::rlimit small { 300000, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of(options("out"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);

  EXPECT_THAT(error, StartsWith("unavailable"));
  EXPECT_THAT(error, HasSubstr("model.safetensors.tmp: cannot write"));
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(Synth, ReportsADiskThatIsTooSmall) {
  // Nothing has room for a thousand layers of this width.
  SynthOptions synth_options = options("out", "clef");
  std::string& config = synth_options.config.config_json;
  const std::string layers = "\"num_hidden_layers\": 64";
  config.replace(config.find(layers), layers.size(), "\"num_hidden_layers\": 1000");
  const std::size_t types = config.find("\"layer_types\"");
  config.erase(types, config.find(']', types) + 2 - types);
  const std::string width = "\"intermediate_size\": 17408";
  config.replace(config.find(width), width.size(), "\"intermediate_size\": 262144");
  const std::string error = error_of(synth_options);
  EXPECT_THAT(error, StartsWith("unavailable"));
  EXPECT_THAT(error, HasSubstr("the disk has room for"));
  EXPECT_TRUE(fs::is_empty(path_));
}

}  // namespace
}  // namespace clefkit
