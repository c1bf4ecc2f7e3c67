#include "clefkit/engine/media.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"
#include "clefkit/base/file_io.h"
#include "clefkit/engine/engine.h"
#include "clefkit/engine/golden_case.h"
#include "clefkit/engine/scheduler.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {
namespace {

Model micro() { return open_checkpoint(golden_directory() / "checkpoints" / "micro"); }

AskOptions with_files() {
  AskOptions options;
  options.media.allow_files = true;
  options.media.base_directory = golden_directory() / "media";
  return options;
}

Request request_with(const std::vector<std::string>& images,
                     const std::vector<std::string>& videos = {}) {
  Request request = load_golden_case("micro", "image_kwargs").request;
  request.images.clear();
  request.videos.clear();
  request.media_kwargs.reset();
  const auto add = [](const std::vector<std::string>& names, const std::string& list,
                      std::vector<MediaSource>& media) {
    for (const std::string& name : names) {
      media.push_back({"file:" + name, fmt::format("{}[{}]", list, media.size())});
    }
  };
  add(images, "images", request.images);
  add(videos, "videos", request.videos);
  return request;
}

TEST(Media, TheSamePictureTwiceIsComputedOnceAndReadTwice) {
  Engine engine(micro(), {.threads = 1});
  const AskOptions options = with_files();
  const Response fresh = engine.ask(request_with({"edges.png", "edges.png"}), options);
  AskOptions uncached = options;
  uncached.use_cache = false;
  EXPECT_EQ(engine.ask(request_with({"edges.png", "edges.png"}), uncached).probabilities,
            fresh.probabilities);
}

TEST(Media, KnownFeaturesAndKnownPrefixesGiveTheSameBits) {
  const AskOptions options = with_files();
  Request request = request_with({"edges.png", "ramp.png"}, {"odd.mkv"});
  Engine fresh(micro(), {.threads = 1, .cache_bytes = 0});
  const auto expected = fresh.ask(request, options).probabilities;

  Engine engine(micro(), {.threads = 1});
  // A part of the pictures is known from another request.
  engine.ask(request_with({"ramp.png"}), options);
  const Response first = engine.ask(request, options);
  EXPECT_EQ(first.reused_tokens, 0u);
  EXPECT_EQ(first.probabilities, expected);
  // All that stands before the questions is known.
  const Response second = engine.ask(request, options);
  EXPECT_GT(second.reused_tokens, 0u);
  EXPECT_EQ(second.probabilities, expected);
}

// With and without the cache that holds their features.
TEST(Media, AreDecodedOnceForSeveralListsOfQuestions) {
  const AskOptions options = with_files();
  const Request request = request_with({"edges.png"}, {"odd.mkv"});
  Request second = request;
  std::swap(second.questions.front(), second.questions.back());
  Engine fresh(micro(), {.threads = 1, .cache_bytes = 0});
  const std::vector<Response> expected{fresh.ask(request, options), fresh.ask(second, options)};
  for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{64} << 20}) {
    Engine engine(micro(), {.threads = 1, .cache_bytes = cache_bytes});
    Scheduler scheduler(engine, {});
    std::promise<Job::Result> answered;
    Job job;
    job.read = [&](AskOptions&) {
      return Job::Work{request, {request.questions, second.questions, request.questions}};
    };
    job.options = options;
    job.done = [&](Job::Result result) { answered.set_value(std::move(result)); };
    ASSERT_TRUE(scheduler.submit(std::move(job)));
    const Job::Result result = answered.get_future().get();
    ASSERT_EQ(result.responses.size(), 3u);
    EXPECT_EQ(result.responses[0].probabilities, expected[0].probabilities);
    EXPECT_EQ(result.responses[1].probabilities, expected[1].probabilities);
    EXPECT_EQ(result.responses[2].probabilities, expected[0].probabilities);
  }
}

TEST(Media, OtherPicturesOfTheSameSizeAreNotTakenForKnownOnes) {
  const AskOptions options = with_files();
  Engine engine(micro(), {.threads = 1});
  const Response one = engine.ask(request_with({"ramp.png"}), options);
  const Response other = engine.ask(request_with({"palette.png"}), options);
  Engine fresh(micro(), {.threads = 1, .cache_bytes = 0});
  EXPECT_EQ(other.probabilities, fresh.ask(request_with({"palette.png"}), options).probabilities);
  EXPECT_NE(one.probabilities, other.probabilities);
}

TEST(Media, ChunksMayCutThroughAPicture) {
  const AskOptions options = with_files();
  const Request request = request_with({"ramp.png"}, {"odd.mkv"});
  Engine whole(micro(), {.threads = 1, .cache_bytes = 0});
  const auto expected = whole.ask(request, options).probabilities;
  for (const std::size_t chunk : {1, 37, 64, 129}) {
    Engine engine(micro(), {.threads = 1, .chunk_tokens = chunk, .cache_bytes = 0});
    const auto found = engine.ask(request, options).probabilities;
    for (std::size_t q = 0; q < expected.size(); ++q) {
      for (std::size_t o = 0; o < expected[q].size(); ++o) {
        EXPECT_NEAR(found[q][o], expected[q][o], 2e-6) << "chunks of " << chunk;
      }
    }
  }
}

TEST(Media, SaysWhichPictureIsWrong) {
  Engine engine(micro(), {.threads = 1});
  const AskOptions options = with_files();
  const Error missing = error_of([&] {
    engine.ask(request_with({"ramp.png", "nothing.png"}), options);
  });
  EXPECT_EQ(missing.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(missing.where(), "images[1]");
  const Error not_a_clip = error_of([&] { engine.ask(request_with({}, {"ramp.png"}), options); });
  EXPECT_EQ(not_a_clip.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(not_a_clip.where(), "videos[0]");
}

TEST(Media, LimitsTokensBeforeResizing) {
  Engine engine(micro(), {.threads = 1});
  AskOptions options = with_files();
  options.limits.max_tokens = 300;
  const Error error =
      error_of([&] { engine.ask(request_with(std::vector<std::string>(5, "ramp.png")), options); });
  EXPECT_EQ(error.code(), ErrorCode::kTooLarge);
  EXPECT_EQ(error.where(), "images[4]");
}

TEST(Media, LimitsTheNumberOfPictures) {
  Engine engine(micro(), {.threads = 1});
  AskOptions options = with_files();
  options.media.max_items = 2;
  const Error error = error_of([&] {
    engine.ask(request_with({"ramp.png", "ramp.png"}, {"odd.mkv"}), options);
  });
  EXPECT_EQ(error.where(), "images");
  EXPECT_EQ(error.message(), "3 pictures and clips, expected at most 2");
}

TEST(Media, ReadsNoFilesUnlessAllowed) {
  Engine engine(micro(), {.threads = 1});
  const Error error = error_of([&] { engine.ask(request_with({"ramp.png"})); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.where(), "images[0]");
}

TEST(Media, AModelWithoutVisionSaysSo) {
  ModelFiles files = open_model_files(golden_directory() / "checkpoints" / "micro");
  files.config.vision = {};
  const Error error = error_of(
      [&] { prepare_media(files, request_with({"ramp.png"}), with_files().media, 16384); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(error.where(), "images");
}

TEST(Media, TheTokenizersPadsMustBeTheConfigurations) {
  Model model = micro();
  model.config.image_token_id = 5;
  Engine engine(std::move(model), {.threads = 1});
  const Error error = error_of([&] { engine.ask(request_with({"ramp.png"}), with_files()); });
  EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
  EXPECT_EQ(error.where(), "tokenizer.json");
}

}  // namespace
}  // namespace clefkit
