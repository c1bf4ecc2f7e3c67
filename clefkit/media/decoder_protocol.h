#pragma once

#include <cstdint>
#include <type_traits>

// What MediaDecoder and clefkit-media-decoder say to each other over the decoder's standard input
// and output. Both come from one build and run on one machine, so structs are sent as they lie in
// memory; `magic` changes with their layout. The decoder believes its parent; the parent believes
// nothing that the decoder says.
//
//   picture:  parent  JobHeader, the file's bytes
//             decoder kPicture with height · width · 3 bytes
//   clip:     parent  JobHeader, the file's bytes
//             decoder kTimes with one double a frame: seconds from the first, ascending
//             parent  a u64 count, then that many u64 indices, strictly ascending
//             decoder kPicture for each index, in order
//   probe:    parent  JobHeader with a Probe: the decoder tries what the sandbox forbids
//             decoder kError with what the system said, unless it died of trying
//
// At any point the decoder may say kError with a sentence instead, and ends.
namespace clefkit::decoder {

inline constexpr std::uint32_t kMagic = 0x01646D63;

enum class JobKind : std::uint32_t { kImage = 1, kVideo = 2, kProbe = 3 };

// Tried by the decoder to show that its sandbox holds.
enum class Probe : std::uint32_t {
  kNothing,
  kOpenFile,
  kOpenSocket,
  kExecute,
  kFork,
  kExecutableMemory,
  kSignalParent,
  kMemory,  // Takes memory until there is no more.
  kSpin,    // Uses the processor until it is ended.
  kSleep,   // Never answers and uses nothing.
  kCrash,
};

struct JobHeader {
  std::uint32_t magic = kMagic;
  JobKind kind = JobKind::kImage;
  std::uint32_t apply_exif = 0;
  Probe probe = Probe::kNothing;
  std::uint64_t bytes = 0;  // Of the file, which follows.
  std::uint64_t pixels = 0;
  std::uint64_t frame_pixels = 0;
  std::uint64_t frames = 0;
  double clip_seconds = 0;
  std::uint64_t cpu_seconds = 0;
  std::uint64_t memory_bytes = 0;
};

enum class MessageKind : std::uint32_t { kError = 1, kPicture = 2, kTimes = 3 };

struct MessageHeader {
  std::uint32_t magic = kMagic;
  MessageKind kind = MessageKind::kError;
  std::uint64_t code = 0;  // kError: an ErrorCode.
  std::uint64_t height = 0, width = 0;
  std::uint64_t bytes = 0;  // That follow.
};

// Of the sentence in kError; longer ones are cut.
inline constexpr std::uint64_t kMaxErrorBytes = 1024;

static_assert(std::is_trivially_copyable_v<JobHeader> && sizeof(JobHeader) == 72);
static_assert(std::is_trivially_copyable_v<MessageHeader> && sizeof(MessageHeader) == 40);

}  // namespace clefkit::decoder
