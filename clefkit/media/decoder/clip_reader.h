#pragma once

#include <cstddef>
#include <memory>

#include "clefkit/base/bytes.h"
#include "clefkit/media/decoder/orientation.h"
#include "clefkit/media/decoder/video.h"

struct AVFormatContext;
struct AVCodecContext;
struct AVIOContext;
struct AVPacket;
struct AVFrame;

namespace clefkit::decoder {

// One pass over a clip in memory: containers and codecs from a short list, no threads, no files.
// Frames come in the decoder's order, which is that of presentation unless the file lies.
class ClipReader {
 public:
  // `bytes` must outlive this. Checks every limit that the headers tell.
  ClipReader(Bytes bytes, const VideoLimits& limits);
  ~ClipReader();
  ClipReader(const ClipReader&) = delete;
  ClipReader& operator=(const ClipReader&) = delete;

  // The next frame, valid until the next call; nullptr after the last. Checks the limits again.
  const AVFrame* next();
  // Of the frame that next() gave, in seconds on the clip's own clock.
  double seconds() const { return seconds_; }
  Orientation orientation() const;

 private:
  // What avio reads: the clip's bytes and how far it has come.
  struct Cursor {
    Bytes bytes;
    std::size_t at = 0;
    static int read(void* cursor, std::uint8_t* to, int size);
    static std::int64_t seek(void* cursor, std::int64_t offset, int whence);
  };
  struct Free {
    void operator()(AVIOContext* io) const;
    void operator()(AVFormatContext* format) const;
    void operator()(AVCodecContext* codec) const;
    void operator()(AVPacket* packet) const;
    void operator()(AVFrame* frame) const;
  };

  void open_container();
  void choose_stream();
  void open_codec();
  bool feed();
  void account();

  VideoLimits limits_;
  Cursor cursor_;
  std::unique_ptr<AVIOContext, Free> io_;
  std::unique_ptr<AVFormatContext, Free> format_;
  std::unique_ptr<AVCodecContext, Free> codec_;
  std::unique_ptr<AVPacket, Free> packet_;
  std::unique_ptr<AVFrame, Free> frame_;
  int stream_ = -1;
  double frame_seconds_ = 0;  // For frames that do not say when they are shown.
  std::size_t frames_ = 0;
  int first_width_ = 0, first_height_ = 0;
  double seconds_ = 0, first_seconds_ = 0;
};

}  // namespace clefkit::decoder
