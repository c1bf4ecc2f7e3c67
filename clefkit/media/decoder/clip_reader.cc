#include "clefkit/media/decoder/clip_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/media/decoder/ffmpeg.h"
#include "clefkit/media/decoder/image_formats.h"
#include "clefkit/media/decoder/matroska_length.h"

namespace clefkit::decoder {
namespace {

constexpr double kUnknownFrameRate = 24;
constexpr int kIoBufferBytes = 1 << 16;

// The decoders that may run, by name, the preferred one of a codec first.
struct CodecChoice {
  AVCodecID id;
  const char* decoder;
};
constexpr CodecChoice kCodecs[] = {
    {AV_CODEC_ID_H264, "h264"},  {AV_CODEC_ID_HEVC, "hevc"},    {AV_CODEC_ID_VP8, "vp8"},
    {AV_CODEC_ID_VP9, "vp9"},    {AV_CODEC_ID_AV1, "libdav1d"}, {AV_CODEC_ID_AV1, "libaom-av1"},
    {AV_CODEC_ID_AV1, "libaom"}, {AV_CODEC_ID_FFV1, "ffv1"},    {AV_CODEC_ID_GIF, "gif"}};
constexpr const char* kCodecNames = "h264,hevc,vp8,vp9,libdav1d,libaom-av1,ffv1,gif";

std::string error_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

[[noreturn]] void out_of_memory() { throw std::bad_alloc(); }

const char* container_of(Bytes bytes) {
  const std::string_view text = as_text(bytes);
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return "gif";
  if (text.starts_with("\x1A\x45\xDF\xA3")) {
    check_matroska_length(bytes);
    return "matroska";
  }
  const std::string_view atom = text.substr(std::min<std::size_t>(4, text.size()), 4);
  for (const char* known : {"ftyp", "moov", "mdat", "free", "skip", "wide"})
    if (atom == known) return "mov";
  throw_error(ErrorCode::kInvalidArgument, "",
              "a file beginning with {}, expected an MP4, MOV, WebM, MKV or GIF clip",
              first_bytes(bytes, 12));
}

// A container may name other files; none is opened.
int refuse_io(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

void check_pixels(std::int64_t width, std::int64_t height, std::uint64_t limit) {
  if (width < 0 || height < 0 ||
      (width > 0 && static_cast<std::uint64_t>(height) > limit / static_cast<std::uint64_t>(width)))
    throw_error(ErrorCode::kInvalidArgument, "",
                "a clip of {}x{} pixels, expected at most {} pixels a frame", width, height, limit);
}

void check_seconds(double seconds, double limit) {
  if (!(seconds <= limit))
    throw_error(ErrorCode::kInvalidArgument, "", "a clip of {:.6g} s, expected at most {:.6g} s",
                seconds, limit);
}

void check_frames(std::uint64_t frames, std::uint64_t limit) {
  if (frames > limit)
    throw_error(ErrorCode::kInvalidArgument, "", "a clip of {} frames{}, expected at most {}",
                frames, frames == limit + 1 ? " or more" : "", limit);
}

// The numbers of a display matrix that turn and mirror; angles between quarter turns are left.
Orientation orientation_of_matrix(const std::int32_t* matrix) {
  const double xx = matrix[0], xy = matrix[1], yx = matrix[3], yy = matrix[4];
  if (std::min(std::abs(xx), std::abs(yy)) > 16 * std::max(std::abs(xy), std::abs(yx))) {
    if (yy > 0) return xx > 0 ? Orientation::kUpright : Orientation::kMirrored;
    return xx > 0 ? Orientation::kFlipped : Orientation::kHalfTurn;
  }
  if (std::min(std::abs(xy), std::abs(yx)) > 16 * std::max(std::abs(xx), std::abs(yy))) {
    if (xy > 0) return yx > 0 ? Orientation::kTransposed : Orientation::kQuarterTurn;
    return yx > 0 ? Orientation::kQuarterTurnBack : Orientation::kTransversed;
  }
  return Orientation::kUpright;
}

const std::int32_t* stream_matrix(const AVStream* stream) {
  constexpr std::size_t kMatrixBytes = 9 * sizeof(std::int32_t);
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 100)
  const AVPacketSideData* data =
      av_packet_side_data_get(stream->codecpar->coded_side_data,
                              stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  if (!data || data->size < kMatrixBytes) return nullptr;
  return reinterpret_cast<const std::int32_t*>(data->data);
#else
  std::size_t size = 0;
  const std::uint8_t* data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  if (!data || size < kMatrixBytes) return nullptr;
  return reinterpret_cast<const std::int32_t*>(data);
#endif
}

}  // namespace

int ClipReader::Cursor::read(void* cursor, std::uint8_t* to, int size) {
  auto& self = *static_cast<Cursor*>(cursor);
  const std::size_t count = std::min(self.bytes.size() - self.at, static_cast<std::size_t>(size));
  if (count == 0) return AVERROR_EOF;
  std::memcpy(to, self.bytes.data() + self.at, count);
  self.at += count;
  return static_cast<int>(count);
}

std::int64_t ClipReader::Cursor::seek(void* cursor, std::int64_t offset, int whence) {
  auto& self = *static_cast<Cursor*>(cursor);
  const auto size = static_cast<std::int64_t>(self.bytes.size());
  whence &= ~AVSEEK_FORCE;
  if (whence == AVSEEK_SIZE) return size;
  const std::int64_t base = whence == SEEK_CUR   ? static_cast<std::int64_t>(self.at)
                            : whence == SEEK_END ? size
                                                 : 0;
  if (offset < -base || offset > size - base) return AVERROR(EINVAL);
  self.at = static_cast<std::size_t>(base + offset);
  return base + offset;
}

void ClipReader::Free::operator()(AVIOContext* io) const {
  av_freep(&io->buffer);
  avio_context_free(&io);
}
void ClipReader::Free::operator()(AVFormatContext* format) const { avformat_close_input(&format); }
void ClipReader::Free::operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
void ClipReader::Free::operator()(AVPacket* packet) const { av_packet_free(&packet); }
void ClipReader::Free::operator()(AVFrame* frame) const { av_frame_free(&frame); }

ClipReader::ClipReader(Bytes bytes, const VideoLimits& limits)
    : limits_(limits), cursor_{bytes}, packet_(av_packet_alloc()), frame_(av_frame_alloc()) {
  if (!packet_ || !frame_) out_of_memory();
  av_log_set_level(AV_LOG_QUIET);
  open_container();
  choose_stream();
  open_codec();
}

ClipReader::~ClipReader() = default;

void ClipReader::open_container() {
  const char* name = container_of(cursor_.bytes);
  const AVInputFormat* container = av_find_input_format(name);
  if (!container)
    throw_error(ErrorCode::kUnsupported, "",
                "a {} container, expected one that this build's FFmpeg can read", name);
  auto* buffer = static_cast<unsigned char*>(av_malloc(kIoBufferBytes));
  if (!buffer) out_of_memory();
  io_.reset(
      avio_alloc_context(buffer, kIoBufferBytes, 0, &cursor_, Cursor::read, nullptr, Cursor::seek));
  if (!io_) {
    av_free(buffer);
    out_of_memory();
  }
  AVFormatContext* format = avformat_alloc_context();
  if (!format) out_of_memory();
  format->pb = io_.get();
  format->flags |= AVFMT_FLAG_CUSTOM_IO;
  format->io_open = refuse_io;
  format->max_streams = 16;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "format_whitelist", "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,gif", 0);
  av_dict_set(&options, "codec_whitelist", kCodecNames, 0);
  av_dict_set(&options, "protocol_whitelist", "none", 0);
  // Frees `format` when it fails.
  const int result = avformat_open_input(&format, "", container, &options);
  av_dict_free(&options);
  if (result == AVERROR(ENOMEM)) out_of_memory();
  if (result < 0) throw_damaged("clip", error_text(result));
  format_.reset(format);
}

void ClipReader::choose_stream() {
  stream_ = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (stream_ < 0)
    throw_error(ErrorCode::kInvalidArgument, "", "a file without video, expected a clip");
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (static_cast<int>(i) != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  const AVStream& stream = *format_->streams[stream_];
  check_pixels(stream.codecpar->width, stream.codecpar->height, limits_.frame_pixels);
  if (stream.nb_frames > 0)
    check_frames(static_cast<std::uint64_t>(stream.nb_frames), limits_.frames);
  if (format_->duration != AV_NOPTS_VALUE)
    check_seconds(static_cast<double>(format_->duration) / AV_TIME_BASE, limits_.seconds);
  if (stream.duration != AV_NOPTS_VALUE)
    check_seconds(static_cast<double>(stream.duration) * av_q2d(stream.time_base), limits_.seconds);
  double rate = av_q2d(stream.avg_frame_rate.num > 0 ? stream.avg_frame_rate : stream.r_frame_rate);
  if (!std::isfinite(rate) || rate <= 0) rate = kUnknownFrameRate;
  frame_seconds_ = 1 / rate;
}

void ClipReader::open_codec() {
  const AVCodecParameters& parameters = *format_->streams[stream_]->codecpar;
  const AVCodec* decoder = nullptr;
  for (const CodecChoice& choice : kCodecs)
    if (!decoder && choice.id == parameters.codec_id)
      decoder = avcodec_find_decoder_by_name(choice.decoder);
  if (!decoder)
    throw_error(ErrorCode::kUnsupported, "",
                "a clip coded as {}, expected h264, hevc, vp8, vp9, av1, ffv1 or gif",
                avcodec_get_name(parameters.codec_id));
  codec_.reset(avcodec_alloc_context3(decoder));
  if (!codec_ || avcodec_parameters_to_context(codec_.get(), &parameters) < 0) out_of_memory();
  codec_->thread_count = 1;
  codec_->thread_type = 0;
  codec_->pkt_timebase = format_->streams[stream_]->time_base;
  codec_->max_pixels = static_cast<std::int64_t>(
      std::min<std::uint64_t>(limits_.frame_pixels, std::uint64_t{1} << 40));
  codec_->flags |= AV_CODEC_FLAG_BITEXACT;
  // Without it H.264 guesses how far frames are out of order, and drops those it guessed wrong.
  if (parameters.codec_id == AV_CODEC_ID_H264) codec_->strict_std_compliance = FF_COMPLIANCE_STRICT;
  if (parameters.codec_id == AV_CODEC_ID_FFV1)
    codec_->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
  const int result = avcodec_open2(codec_.get(), decoder, nullptr);
  if (result == AVERROR(ENOMEM)) out_of_memory();
  if (result < 0) throw_damaged("clip", error_text(result));
}

// Gives the codec the next packet, or at the end of the file the word that there is none.
bool ClipReader::feed() {
  for (;;) {
    av_packet_unref(packet_.get());
    const int result = av_read_frame(format_.get(), packet_.get());
    if (result == AVERROR(ENOMEM)) out_of_memory();
    if (result == AVERROR_EOF) {
      if (avcodec_send_packet(codec_.get(), nullptr) < 0)
        throw_damaged("clip", "its end cannot be decoded");
      return false;
    }
    if (result < 0)
      throw_damaged("clip", fmt::format("after {} frames: {}", frames_, error_text(result)));
    if (packet_->stream_index != stream_) continue;
    if (packet_->flags & AV_PKT_FLAG_CORRUPT)
      throw_damaged("clip", fmt::format("it ends within frame {}", frames_));
    const int sent = avcodec_send_packet(codec_.get(), packet_.get());
    if (sent == AVERROR(ENOMEM)) out_of_memory();
    if (sent < 0)
      throw_damaged("clip", fmt::format("after {} frames: {}", frames_, error_text(sent)));
    return true;
  }
}

const AVFrame* ClipReader::next() {
  for (;;) {
    const int result = avcodec_receive_frame(codec_.get(), frame_.get());
    if (result == 0) {
      account();
      return frame_.get();
    }
    if (result == AVERROR_EOF) return nullptr;
    if (result == AVERROR(ENOMEM)) out_of_memory();
    if (result != AVERROR(EAGAIN))
      throw_damaged("clip", fmt::format("after {} frames: {}", frames_, error_text(result)));
    feed();
  }
}

void ClipReader::account() {
  const AVFrame& frame = *frame_;
  if ((frame.flags & AV_FRAME_FLAG_CORRUPT) || frame.decode_error_flags)
    throw_damaged("clip", fmt::format("frame {} is not whole", frames_));
  check_pixels(frame.width, frame.height, limits_.frame_pixels);
  if (frames_ == 0) {
    first_width_ = frame.width;
    first_height_ = frame.height;
  } else if (frame.width != first_width_ || frame.height != first_height_) {
    throw_error(ErrorCode::kUnsupported, "", "frame {} is {}x{}, expected {}x{} as the first",
                frames_, frame.width, frame.height, first_width_, first_height_);
  }
  const std::int64_t time = frame.best_effort_timestamp;
  if (time != AV_NOPTS_VALUE)
    seconds_ = static_cast<double>(time) * av_q2d(format_->streams[stream_]->time_base);
  else if (frames_ > 0)
    seconds_ += frame_seconds_;
  if (frames_ == 0) first_seconds_ = seconds_;
  check_seconds(std::abs(seconds_ - first_seconds_), limits_.seconds);
  check_frames(++frames_, limits_.frames);
}

Orientation ClipReader::orientation() const {
  const std::int32_t* matrix = stream_matrix(format_->streams[stream_]);
  if (!matrix) {
    const AVFrameSideData* data = av_frame_get_side_data(frame_.get(), AV_FRAME_DATA_DISPLAYMATRIX);
    if (data && data->size >= 9 * sizeof(std::int32_t))
      matrix = reinterpret_cast<const std::int32_t*>(data->data);
  }
  return matrix ? orientation_of_matrix(matrix) : Orientation::kUpright;
}

}  // namespace clefkit::decoder
