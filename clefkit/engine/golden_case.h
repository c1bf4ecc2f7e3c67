#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/engine/engine.h"
#include "clefkit/questions/request.h"

// For tests: the reference's cases (tests/golden/README.md).

namespace clefkit {

// Another set of the same layout can be named in the environment.
inline std::filesystem::path golden_directory() {
  const char* given = std::getenv("CLEFKIT_GOLDEN");
  return given != nullptr ? given : CLEFKIT_SOURCE_DIR "/tests/golden";
}

struct GoldenCase {
  std::string checkpoint, name;
  Request request;
  AskOptions options;
  Json answers;  // {question id: {"logits": {option id: …}, "probabilities": …}}

  bool has_media() const { return !request.images.empty() || !request.videos.empty(); }
  std::filesystem::path trace_path() const {
    return golden_directory() / "cases" / checkpoint / (name + ".safetensors");
  }
};

inline GoldenCase load_golden_case(const std::string& checkpoint, const std::string& name) {
  const auto path = golden_directory() / "cases" / checkpoint / (name + ".json");
  const Json json =
      parse_json(read_file(path, 1 << 24), path.string(), {.duplicates = DuplicateKeys::kLastWins});
  GoldenCase golden{.checkpoint = checkpoint,
                    .name = name,
                    .request = request_from_json(*json.find("request"), path.string()),
                    .options = {},
                    .answers = *json.find("answers")};
  golden.options.limits.max_tokens = json.find("max_tokens")->as_uint64().value();
  golden.options.limits.overflow = RecordLimits::Overflow::kTruncate;
  const auto says = [&](const char* key, const char* value) {
    const Json* found = json.find(key);
    return found != nullptr && found->is_string() && found->string() == value;
  };
  MediaOptions& media = golden.options.media;
  media.profile = says("profile", "release") ? MediaProfile::kRelease : MediaProfile::kAne;
  media.exif = says("exif", "ignore") ? ExifOrientation::kIgnore : ExifOrientation::kApply;
  media.allow_files = true;
  media.base_directory = golden_directory() / "media";
  return golden;
}

// Those with pictures or clips, or those without.
inline std::vector<GoldenCase> load_golden_cases(const std::string& checkpoint, bool with_media) {
  std::vector<GoldenCase> cases;
  for (const auto& entry :
       std::filesystem::directory_iterator(golden_directory() / "cases" / checkpoint)) {
    if (entry.path().extension() != ".json") continue;
    GoldenCase golden = load_golden_case(checkpoint, entry.path().stem().string());
    if (golden.has_media() == with_media) cases.push_back(std::move(golden));
  }
  return cases;
}

// Of all options of all questions, in their order.
inline std::vector<double> probability_differences(const GoldenCase& golden,
                                                   const Response& response) {
  std::vector<double> differences;
  for (std::size_t q = 0; q < golden.request.questions.size(); ++q) {
    const Question& question = golden.request.questions[q];
    const Json* expected = golden.answers.find(question.id)->find("probabilities");
    EXPECT_EQ(expected->members().size(), question.options.size());
    for (std::size_t o = 0; o < question.options.size(); ++o) {
      const double value = expected->find(question.options[o].id)->as_double().value();
      differences.push_back(std::abs(response.probabilities[q][o] - value));
    }
  }
  return differences;
}

inline double largest_probability_difference(const GoldenCase& golden, const Response& response) {
  double largest = 0;
  for (const double difference : probability_differences(golden, response)) {
    if (!(difference <= largest)) largest = difference;  // A NaN is kept.
  }
  return largest;
}

}  // namespace clefkit
