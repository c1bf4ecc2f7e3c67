#include "clefkit/media/media_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/base/sha256.h"
#include "clefkit/media/decoder_process.h"

namespace clefkit {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using FileBytes = std::vector<std::uint8_t>;

const fs::path kSamples = CLEFKIT_SOURCE_DIR "/tests/media";
constexpr char kWhere[] = "images[3]";

bool is_sanitized() {
  const char* told = std::getenv("CLEFKIT_SANITIZED");
  return told != nullptr && *told == '1';
}

FileBytes sample(const std::string& name) {
  const std::string text = read_file(kSamples / name, 1 << 24);
  return {text.begin(), text.end()};
}

// What Pillow and PyAV read from the samples (tests/media/make.py).
Json expected_of(const char* kind) {
  const std::string path = (kSamples / "expected.json").string();
  return *parse_json(read_file(path, 1 << 20), path, {}).find(kind);
}

std::size_t size_of(const Json& facts, const char* key) {
  return facts.find(key)->as_uint64().value();
}

Error image_error(const FileBytes& bytes, const MediaLimits& limits = {}) {
  return error_of(
      [&] { MediaDecoder(limits).decode_image(bytes, ExifOrientation::kApply, kWhere); });
}

struct Clip {
  std::vector<double> seconds;
  std::vector<Image> frames;
};

Clip decode_clip(const FileBytes& bytes, const MediaLimits& limits = {},
                 std::vector<std::size_t> wanted = {}) {
  Clip clip;
  MediaDecoder(limits).decode_video(
      bytes, kWhere,
      [&](std::span<const double> seconds) {
        clip.seconds.assign(seconds.begin(), seconds.end());
        for (std::size_t i = 0; wanted.size() < seconds.size() && i < seconds.size(); ++i) {
          wanted.push_back(i);
        }
        return wanted;
      },
      [&](const Image& frame, double) { clip.frames.push_back(frame); });
  return clip;
}

Error clip_error(const FileBytes& bytes, const MediaLimits& limits = {}) {
  return error_of([&] { decode_clip(bytes, limits); });
}

TEST(MediaDecoder, ReadsPicturesAsPillowDoes) {
  std::size_t pictures = 0;
  const Json expected_pictures = expected_of("pictures");
  for (const auto& [name, facts] : expected_pictures.members()) {
    for (const auto& [key, orientation] : {std::pair{"apply", ExifOrientation::kApply},
                                           std::pair{"ignore", ExifOrientation::kIgnore}}) {
      SCOPED_TRACE(name + " " + key);
      const Image image = MediaDecoder().decode_image(sample(name), orientation, kWhere);
      const Json& expected = *facts.find(key);
      EXPECT_EQ(image.height, size_of(expected, "height"));
      EXPECT_EQ(image.width, size_of(expected, "width"));
      EXPECT_EQ(sha256_hex(image.rgb), expected.find("sha256")->string());
      ++pictures;
    }
  }
  EXPECT_GE(pictures, 50u);
}

std::vector<double> channel_means(const Image& frame, std::size_t rows, std::size_t columns) {
  std::vector<double> sums(3);
  for (std::size_t y = 0; y < rows; ++y) {
    for (std::size_t x = 0; x < columns; ++x) {
      for (std::size_t c = 0; c < 3; ++c) sums[c] += frame.rgb[(y * frame.width + x) * 3 + c];
    }
  }
  for (double& sum : sums) sum /= static_cast<double>(rows * columns);
  return sums;
}

void expect_near(const std::vector<double>& found, const Json& expected, double tolerance) {
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(found[c], expected.items()[c].as_double().value(), tolerance);
  }
}

TEST(MediaDecoder, ReadsClipsAsFfmpegDoes) {
  const Json expected_clips = expected_of("clips");
  for (const auto& [name, facts] : expected_clips.members()) {
    SCOPED_TRACE(name);
    const Clip clip = decode_clip(sample(name));
    const auto& seconds = facts.find("seconds")->items();
    ASSERT_EQ(clip.seconds.size(), seconds.size());
    ASSERT_EQ(clip.frames.size(), seconds.size());
    std::string pixels;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      EXPECT_NEAR(clip.seconds[i], seconds[i].as_double().value(), 1e-9);
      const Image& frame = clip.frames[i];
      ASSERT_EQ(frame.height, size_of(facts, "height"));
      ASSERT_EQ(frame.width, size_of(facts, "width"));
      // FFmpeg's versions and instruction sets round colours by a level.
      expect_near(channel_means(frame, frame.height, frame.width), facts.find("means")->items()[i],
                  0.5);
      pixels.append(frame.rgb.begin(), frame.rgb.end());
    }
    expect_near(channel_means(clip.frames[0], 16, 16), *facts.find("corner"), 1.0);
    if (const Json* sha256 = facts.find("sha256")) {
      EXPECT_EQ(sha256_hex(as_bytes(pixels)), sha256->string());
    }
  }
}

TEST(MediaDecoder, GivesTheFramesAskedForAndRepeats) {
  const FileBytes bytes = sample("rgb.mkv");
  const Clip all = decode_clip(bytes);
  const Clip some = decode_clip(bytes, {}, {1, 1, 4, 7, 7, 7, 7, 7, 7});
  ASSERT_EQ(some.frames.size(), 9u);
  EXPECT_EQ(some.frames[0].rgb, all.frames[1].rgb);
  EXPECT_EQ(some.frames[1].rgb, all.frames[1].rgb);
  EXPECT_EQ(some.frames[2].rgb, all.frames[4].rgb);
  EXPECT_EQ(some.frames[8].rgb, all.frames[7].rgb);
}

TEST(MediaDecoder, RefusesWhatIsNoPicture) {
  for (const FileBytes& bytes :
       {FileBytes{}, FileBytes{'x'}, FileBytes(5000, 0), sample("h264.mp4"), sample("make.py")}) {
    const Error error = image_error(bytes);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_EQ(error.where(), kWhere);
  }
}

TEST(MediaDecoder, RefusesClipsItCannotRead) {
  EXPECT_EQ(clip_error(sample("rgb.png")).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(clip_error(FileBytes(5000, 0)).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(clip_error(sample("sound_only.mp4")).code(), ErrorCode::kInvalidArgument);
  const Error codec = clip_error(sample("mpeg2.mkv"));
  EXPECT_EQ(codec.code(), ErrorCode::kUnsupported) << codec.what();
  EXPECT_EQ(codec.where(), kWhere);
  EXPECT_THAT(codec.message(), HasSubstr("mpeg2video"));
  EXPECT_THAT(clip_error(sample("mpeg4.avi")).code(),
              AnyOf(ErrorCode::kUnsupported, ErrorCode::kInvalidArgument));
}

TEST(MediaDecoder, RefusesTruncatedFiles) {
  for (const char* name : {"plain.jpg", "progressive.jpg", "rgb.png", "alpha.webp", "first.gif"}) {
    const FileBytes whole = sample(name);
    for (const std::size_t part : {1, 3, 5, 7, 9}) {
      const FileBytes cut(whole.begin(),
                          whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * part / 10));
      const bool first_frame_is_whole = std::string(name) == "first.gif" && part >= 5;
      if (!first_frame_is_whole) {
        EXPECT_EQ(image_error(cut).code(), ErrorCode::kInvalidArgument) << name << " " << part;
      }
    }
  }
  for (const char* name : {"h264.mp4", "rgb.mkv", "vp9.webm"}) {
    FileBytes cut = sample(name);
    cut.resize(cut.size() / 3);
    EXPECT_EQ(clip_error(cut).code(), ErrorCode::kInvalidArgument) << name;
  }
}

// A PNG that says it is 60,000×60,000 has no more bytes than any other.
TEST(MediaDecoder, RefusesBombsByTheirHeader) {
  FileBytes png = sample("rgb.png");
  const FileBytes size{0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60};
  std::ranges::copy(size, png.begin() + 16);
  EXPECT_EQ(image_error(png).code(), ErrorCode::kInvalidArgument);
  for (const char* name : {"rgb.png", "plain.jpg", "alpha.webp", "first.gif"}) {
    const Error error = image_error(sample(name), {.pixels = 70 * 45 - 1});
    EXPECT_THAT(error.message(), HasSubstr("70x45 pixels, expected at most 3149")) << name;
  }
  EXPECT_THAT(image_error(sample("rgb.png"), {.bytes = 100}).message(),
              HasSubstr("expected at most 100"));
}

TEST(MediaDecoder, LimitsClips) {
  const FileBytes clip = sample("h264.mp4");
  EXPECT_THAT(clip_error(clip, {.frame_pixels = 1000}).message(), HasSubstr("64x48"));
  EXPECT_THAT(clip_error(clip, {.frames = 7}).message(), HasSubstr("expected at most 7"));
  EXPECT_THAT(clip_error(clip, {.clip_seconds = 1}).message(), HasSubstr("expected at most 1 s"));
}

// Every sample with bytes changed at random gives a picture, a clip or one error; nothing else.
TEST(MediaDecoder, SurvivesDamage) {
  std::mt19937 random(1);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSamples)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const FileBytes whole = sample(name);
    const std::string ending = fs::path(name).extension().string();
    const bool is_clip = ending == ".mp4" || ending == ".mkv" || ending == ".webm";
    for (int round = 0; round < (is_sanitized() ? 1 : 6); ++round) {
      FileBytes bytes = whole;
      for (int i = 0; i <= round * 4; ++i) {
        bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
      }
      try {
        if (is_clip) {
          decode_clip(bytes);
        } else {
          MediaDecoder().decode_image(bytes, ExifOrientation::kApply, kWhere);
        }
      } catch (const Error& error) {
        EXPECT_THAT(error.code(), AnyOf(ErrorCode::kInvalidArgument, ErrorCode::kUnsupported))
            << name << ": " << error.what();
        EXPECT_EQ(error.where(), kWhere);
        EXPECT_THAT(error.message(), ::testing::Not(HasSubstr("crashed"))) << name;
      }
    }
  }
}

// --- The process.

fs::path decoder_program() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "clefkit-media-decoder";
}

Error probe(decoder::Probe probe, std::chrono::seconds limit = std::chrono::seconds(20)) {
  return error_of([&] {
    DecoderProcess process(decoder_program(), kWhere, limit, nullptr);
    decoder::JobHeader job;
    job.kind = decoder::JobKind::kProbe;
    job.probe = probe;
    job.cpu_seconds = static_cast<std::uint64_t>(limit.count());
    job.memory_bytes = std::uint64_t{1} << 30;
    process.send({reinterpret_cast<const std::uint8_t*>(&job), sizeof job});
    process.receive_picture(1);
  });
}

#ifdef __linux__
TEST(MediaSandbox, ForbidsFilesNetworkAndProcesses) {
  using decoder::Probe;
  if (is_sanitized()) GTEST_SKIP() << "no filter of system calls under a sanitizer";
  EXPECT_EQ(probe(Probe::kNothing).message(), "allowed");  // The probe itself answers.
  EXPECT_THAT(probe(Probe::kOpenFile).message(), HasSubstr("not permitted"));
  EXPECT_THAT(probe(Probe::kExecutableMemory).message(), HasSubstr("not permitted"));
  for (const Probe deadly :
       {Probe::kOpenSocket, Probe::kExecute, Probe::kFork, Probe::kSignalParent}) {
    EXPECT_THAT(probe(deadly).message(), HasSubstr("sandbox forbids")) << static_cast<int>(deadly);
  }
}

TEST(MediaSandbox, LimitsMemoryAndTime) {
  using decoder::Probe;
  if (!is_sanitized()) {
    EXPECT_THAT(probe(Probe::kMemory).message(), HasSubstr("more memory than the limit allows"));
  }
  const std::chrono::seconds second(1);
  EXPECT_THAT(probe(Probe::kSpin, second).message(), HasSubstr("longer than 1 s"));
  EXPECT_THAT(probe(Probe::kSleep, second).message(), HasSubstr("longer than 1 s"));
}
#endif

TEST(MediaProcess, ACrashIsOneError) {
  const Error error = probe(decoder::Probe::kCrash);
  // A sanitizer makes an exit of the crash.
  EXPECT_EQ(error.code(), is_sanitized() ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.where(), kWhere);
}

TEST(MediaProcess, SaysThatTheProgramIsMissing) {
  const Error error = error_of([] {
    MediaDecoder({}, "/nowhere/decoder")
        .decode_image(sample("rgb.png"), ExifOrientation::kApply, kWhere);
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/decoder: No such file"));
}

TEST(MediaProcess, DoesNotCountTheCallersTime) {
  std::size_t taken = 0;
  MediaDecoder({.decode_time = std::chrono::seconds(2)})
      .decode_video(
          sample("h264.mp4"), kWhere,
          [](std::span<const double>) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
            return std::vector<std::size_t>{0, 2};
          },
          [&](const Image&, double) {
            std::this_thread::sleep_for(std::chrono::milliseconds(700));
            ++taken;
          });
  EXPECT_EQ(taken, 2);
}

TEST(MediaProcess, StopsSoonWhenCancelled) {
  CancelToken token;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    token.cancel();
  });
  const Error error = error_of([&] {
    DecoderProcess process(decoder_program(), kWhere, std::chrono::seconds(20), &token);
    process.receive_picture(1);  // It waits for a job that never comes.
  });
  later.join();
  EXPECT_EQ(error.code(), ErrorCode::kCancelled);
}

// A decoder that an exploit has taken over: a shell script that says what it likes.
class FakeDecoder {
 public:
  explicit FakeDecoder(const std::string& answer) {
    std::ofstream(path_) << "#!/bin/sh\n" << answer << "\nsleep 5\n";
    fs::permissions(path_, fs::perms::owner_all);
  }
  ~FakeDecoder() { fs::remove(path_); }

  Error image_error() const {
    return error_of([&] {
      MediaDecoder({.decode_time = std::chrono::seconds(3)}, path_)
          .decode_image(sample("rgb.png"), ExifOrientation::kApply, kWhere);
    });
  }
  Error clip_error() const {
    return error_of([&] {
      MediaDecoder({.decode_time = std::chrono::seconds(3)}, path_)
          .decode_video(
              sample("rgb.png"), kWhere, [](auto) { return std::vector<std::size_t>{0}; },
              [](const Image&, double) {});
    });
  }

 private:
  const fs::path path_ =
      fs::path(::testing::TempDir()) / ("fake_decoder_" + std::to_string(::getpid()));
};

std::string message(const decoder::MessageHeader& header, const std::string& body = {}) {
  std::string escaped;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (const char c : bytes + body) {
    escaped += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return "printf '" + escaped + "'";
}

TEST(MediaProcess, BelievesNothingTheDecoderSays) {
  using decoder::MessageKind;
  constexpr std::uint64_t kHuge = ~std::uint64_t{0} / 2;
  const std::vector<std::string> lies{
      "printf garbage; exit",
      "exit 0",
      message({.magic = 1, .kind = MessageKind::kPicture}),
      message({.kind = static_cast<MessageKind>(77)}),
      message({.kind = MessageKind::kPicture, .height = kHuge, .width = 2, .bytes = 6}),
      message({.kind = MessageKind::kPicture, .height = kHuge, .width = kHuge, .bytes = kHuge}),
      message({.kind = MessageKind::kPicture, .height = 2, .width = 2, .bytes = kHuge}),
      message({.kind = MessageKind::kPicture, .height = 0, .width = 2, .bytes = 0}),
      message({.kind = MessageKind::kPicture, .height = 2, .width = 2, .bytes = 12}, "short") +
          "; exit",
      message({.kind = MessageKind::kTimes, .bytes = kHuge}),
      message({.kind = MessageKind::kError, .bytes = kHuge}),
  };
  for (const std::string& lie : lies) {
    const FakeDecoder fake(lie);
    EXPECT_EQ(fake.image_error().code(), ErrorCode::kInvalidArgument) << lie;
    EXPECT_EQ(fake.clip_error().code(), ErrorCode::kInvalidArgument) << lie;
  }
}

TEST(MediaProcess, DoesNotBlameTheMediaForAMachineThatFails) {
  // 127: a shared library that is not there. SIGKILL: Linux out of memory.
  EXPECT_EQ(FakeDecoder("exit 127").image_error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(FakeDecoder("kill -9 $$").image_error().code(), ErrorCode::kUnavailable);
}

TEST(MediaProcess, BelievesNoTimesThatDoNotAscendFromZero) {
  const auto times = [](std::vector<double> seconds) {
    std::string body(seconds.size() * sizeof(double), ' ');
    std::memcpy(body.data(), seconds.data(), body.size());
    return message({.kind = decoder::MessageKind::kTimes, .bytes = body.size()}, body);
  };
  for (const std::vector<double>& lie : std::vector<std::vector<double>>{
           {0, 2, 1}, {1, 2}, {0, std::nan("")}, {0, INFINITY}, {0, 1e9}}) {
    EXPECT_THAT(FakeDecoder(times(lie)).clip_error().message(), HasSubstr("do not ascend"));
  }
}

TEST(MediaProcess, ShowsAnErrorAsOneCleanLine) {
  const FakeDecoder fake(
      message({.kind = decoder::MessageKind::kError, .code = 99, .bytes = 9}, "a\nb\x1b[1m\xff c"));
  const Error error = fake.image_error();
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message(), "a?b?[1m");
}

}  // namespace
}  // namespace clefkit
