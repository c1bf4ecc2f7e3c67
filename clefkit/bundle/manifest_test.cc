#include "clefkit/bundle/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kHash(64, 'a');

Manifest example() {
  Manifest manifest;
  manifest.producer_version = "1.2.3";
  manifest.source_files = {{"model.safetensors", 7, kHash}};
  manifest.palette = "optimal";
  manifest.rounds = 40;
  manifest.min_weights = 1048576;
  manifest.plan = "grouped";
  manifest.palettized = {{"w", 16, 64, 0.025, 0.5}};
  manifest.kept = {{"n", "fp16", "a norm"}};
  manifest.weights = {{"w", "programs/text/a.bin", BlobWeight::Kind::kLut6, {16, 64}, 64, 896},
                      {"n", "programs/text/a.bin", BlobWeight::Kind::kFp16, {64}, 1088, 0}};
  manifest.programs = {{.name = "attention-03@1024",
                        .kind = "attention",
                        .layers = {3},
                        .context = 1024,
                        .mil = "programs/text/a.mil",
                        .weights = "programs/text/a.bin",
                        .inputs = {{"x", {1, 64, 1, 128}}},
                        .outputs = {{"x_out", {1, 64, 1, 128}}}}};
  manifest.scales = {.calibration_sha256 = kHash,
                     .tokens = 321,
                     .mlp = {{0, 16, 4, 128}, {2, 1, 0, 0}, {3, 8, 64, 512}}};
  manifest.files = {{"programs/text/a.bin", 1280, kHash}, {"programs/text/a.mil", 99, kHash}};
  return manifest;
}

std::string message_of(const std::string& text) {
  try {
    parse_manifest(text, "manifest.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    return error.what();
  }
  return "no error";
}

// The example's text with one part replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_string(manifest_to_json(example()));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, ReadsBackWhatItWrote) {
  const std::string text = to_string(manifest_to_json(example()));
  EXPECT_EQ(to_string(manifest_to_json(parse_manifest(text, "m"))), text);
}

TEST(Manifest, HasTheKeysOfTheSpecification) {
  const Json json = manifest_to_json(example());
  EXPECT_EQ(json.find("format")->string(), "clefkit-bundle");
  EXPECT_EQ(json.find("format_version")->as_int64(), 1);
  const Json& quantization = *json.find("quantization");
  for (const char* key :
       {"kind", "bits", "group_channels", "palette", "rounds", "min_weights", "tensors", "kept"}) {
    EXPECT_NE(quantization.find(key), nullptr) << key;
  }
  EXPECT_EQ(to_string(quantization.find("tensors")->items()[0]),
            R"({"name":"w","rows":16,"columns":64,"relative_rmse":0.025,"max_abs_error":0.5})");
  EXPECT_TRUE(json.find("source")->find("repository")->is_null());
}

TEST(Manifest, IgnoresUnknownKeys) {
  EXPECT_EQ(parse_manifest(changed("\"license\"", "\"new_key\":[1],\"license\""), "m").palette,
            "optimal");
}

TEST(Manifest, NamesBothVersionsWhenTheBundleIsNewer) {
  EXPECT_EQ(message_of(changed("\"format_version\":1", "\"format_version\":7")),
            "manifest.json.format_version: the bundle has format version 7, this clefkit reads "
            "version 1; a newer clefkit is needed");
}

TEST(Manifest, RefusesMalformedOnes) {
  EXPECT_THAT(message_of("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_of("[]"), HasSubstr("found an array, expected an object"));
  EXPECT_THAT(message_of(changed("clefkit-bundle", "other")),
              HasSubstr("expected \"clefkit-bundle\""));
  EXPECT_THAT(message_of(changed("\"bytes\":1280", "\"bytes\":-1")), HasSubstr("files[0].bytes"));
  EXPECT_THAT(message_of(changed("\"bytes\":1280", "\"bytes\":1e3")), HasSubstr("files[0].bytes"));
  EXPECT_THAT(message_of(changed("\"rows\":16", "\"rows\":\"x\"")),
              HasSubstr("quantization.tensors[0].rows: found \"x\", expected a whole number"));
  EXPECT_THAT(message_of(changed("\"kind\":\"lut6\",\"bits\"", "\"kind\":\"lut4\",\"bits\"")),
              HasSubstr("expected lut6"));
  EXPECT_THAT(message_of(changed("\"shape\":[64]", "\"shape\":[0]")), HasSubstr("shape[0]"));
  EXPECT_THAT(message_of(changed(kHash, "A" + kHash.substr(1))), HasSubstr("sha256"));
  EXPECT_THAT(message_of(changed("\"plan\"", "\"plan\":\"x\",\"plan\"")),
              HasSubstr("stands twice"));
}

TEST(Manifest, ListsTheFilesOfItsPrograms) {
  EXPECT_THAT(message_of(changed("\"mil\":\"programs/text/a.mil\"", "\"mil\":\"b.mil\"")),
              HasSubstr("programs: attention-03@1024 names b.mil, expected a file"));
  EXPECT_THAT(message_of(changed("\"weights\":\"programs/text/a.bin\"", "\"weights\":\"../b\"")),
              HasSubstr("leaves the bundle"));
  EXPECT_THAT(message_of(changed("[1,64,1,128]", "[1,-64,1,128]")), HasSubstr("whole number"));
  EXPECT_THAT(message_of(changed("\"context\":1024", "\"context\":\"1024\"")),
              HasSubstr("context"));
  // Bundles of before have none.
  Json json = manifest_to_json(example());
  std::erase_if(json.members(), [](const Json::Member& m) { return m.first == "programs"; });
  EXPECT_TRUE(parse_manifest(to_string(json), "m").programs.empty());
}

TEST(Manifest, TellsOneStoryOfEveryWeight) {
  EXPECT_THAT(message_of(changed("\"rows\":16", "\"rows\":32")),
              HasSubstr("quantization.tensors has w with 32 rows and 64 columns, expected"));
  EXPECT_THAT(message_of(changed("\"tensors\":[{\"name\":\"w\"", "\"tensors\":[{\"name\":\"v\"")),
              HasSubstr("quantization.tensors has v, expected an entry of `weights` that is lut6"));
  EXPECT_THAT(message_of(changed("\"kept\":[{\"name\":\"n\"", "\"kept\":[{\"name\":\"w\"")),
              HasSubstr("quantization.kept has w, expected an entry of `weights` that is fp16"));
  EXPECT_THAT(
      message_of(changed("\"stored\":\"fp16\"", "\"stored\":\"bf16\"")),
      HasSubstr("`weights` has n, expected it in quantization.tensors or quantization.kept"));
  Manifest twice = example();
  twice.weights.push_back(twice.weights.back());
  EXPECT_THAT(message_of(to_string(manifest_to_json(twice))),
              HasSubstr(".weights: n stands twice"));
}

TEST(Manifest, KeepsTheScalesOfItsPrograms) {
  const TextScales scales = parse_manifest(to_string(manifest_to_json(example())), "m").scales;
  EXPECT_EQ(scales.calibration_sha256, kHash);
  EXPECT_EQ(scales.tokens, 321u);
  ASSERT_EQ(scales.mlp.size(), 3u);
  EXPECT_EQ(scales.mlp[2].layer, 3u);
  EXPECT_EQ(scales.mlp[2].factor, 8u);
  EXPECT_EQ(scales.mlp[2].largest_activation, 64);
  EXPECT_EQ(scales.mlp[2].largest_sum, 512);
  EXPECT_EQ(mlp_factors(scales), (MlpFactors{{0, 16}, {2, 1}, {3, 8}}));
  // Bundles of before have none, others were not calibrated.
  Json json = manifest_to_json(example());
  std::erase_if(json.members(), [](const Json::Member& m) { return m.first == "scales"; });
  EXPECT_TRUE(parse_manifest(to_string(json), "m").scales.mlp.empty());
  json.set("scales", scales_to_json({}));
  EXPECT_TRUE(parse_manifest(to_string(json), "m").scales.mlp.empty());
}

TEST(Manifest, RefusesScalesThatAreNone) {
  for (const char* factor : {"0", "3", "32", "-2", "2.0", "1e9", "\"8\"", "null"}) {
    EXPECT_THAT(message_of(changed("\"factor\":8", std::string("\"factor\":") + factor)),
                HasSubstr("scales.mlp[2].factor: "))
        << factor;
  }
  for (const char* largest : {"1e999", "-1", "null", "\"64\"", "true"}) {
    EXPECT_THAT(message_of(changed("\"largest_activation\":64.0",
                                   std::string("\"largest_activation\":") + largest)),
                HasSubstr("scales.mlp[2].largest_activation: "))
        << largest;
  }
  EXPECT_THAT(message_of(changed("\"largest_sum\":512.0", "\"largest_sum\":-1e999")),
              HasSubstr("scales.mlp[2].largest_sum: "));
  EXPECT_THAT(message_of(changed("\"largest_sum\":512.0", "\"sum\":512")),
              HasSubstr("has no \"largest_sum\""));
  for (const char* layer : {"0", "2", "1", "-3", "3.5", "99999999999999999999"}) {
    EXPECT_THAT(message_of(changed("\"layer\":3", std::string("\"layer\":") + layer)),
                HasSubstr("scales.mlp[2].layer: "))
        << layer;
  }
  const std::string digest = "\"calibration\":{\"sha256\":\"" + kHash + "\"";
  EXPECT_THAT(message_of(changed(digest, "\"calibration\":{\"sha256\":\"a\"")),
              HasSubstr("scales.calibration.sha256: found \"a\""));
  EXPECT_THAT(message_of(changed(digest + ",\"tokens\":321}", "\"calibration\":null")),
              HasSubstr("scales.calibration: found null"));
  EXPECT_THAT(message_of(changed("\"tokens\":321", "\"tokens\":-1")),
              HasSubstr("scales.calibration.tokens: "));
  EXPECT_THAT(message_of(changed("\"scales\":{", "\"scales\":[],\"other\":{")),
              HasSubstr("scales: found an array, expected an object"));
}

TEST(Manifest, RefusesPathsThatLeaveTheBundle) {
  for (const char* path : {"/etc/passwd", "../a", "a/../../b", "", "a\\\\b", "a\\u0000b"}) {
    EXPECT_THAT(message_of(changed("\"path\":\"programs/text/a.bin\"",
                                   std::string("\"path\":\"") + path + "\"")),
                HasSubstr("leaves the bundle"))
        << path;
  }
}

TEST(BundlePath, RefusesALinkThatLeavesTheBundle) {
  std::string pattern = (fs::temp_directory_path() / "clefkit-bundle-XXXXXX").string();
  const fs::path root = ::mkdtemp(pattern.data());
  fs::create_directory(root / "bundle");
  std::ofstream(root / "secret") << "x";
  std::ofstream(root / "bundle" / "inside") << "x";
  fs::create_symlink(root / "secret", root / "bundle" / "link");
  fs::create_symlink("inside", root / "bundle" / "good-link");

  EXPECT_EQ(bundle_path(root / "bundle", "inside"), fs::canonical(root / "bundle" / "inside"));
  EXPECT_EQ(bundle_path(root / "bundle", "good-link"), fs::canonical(root / "bundle" / "inside"));
  EXPECT_THROW(bundle_path(root / "bundle", "link"), Error);
  EXPECT_THROW(bundle_path(root / "bundle", "absent"), Error);
  fs::remove_all(root);
}

}  // namespace
}  // namespace clefkit
