#include <cstdlib>

#include "clefkit/base/file_io.h"
#include "clefkit/engine/record.h"

using clefkit::MediaItem;
using clefkit::Record;
using clefkit::TokenSpan;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const Record& record, const clefkit::RecordLimits& limits) {
  const std::size_t size = record.input_ids.size();
  const auto is_inside = [&](const TokenSpan& span) {
    return span.begin < span.end && span.end <= size;
  };
  require(size <= limits.max_tokens);
  require(record.state.end <= size);
  require(record.state.size() + record.dropped_state_tokens == record.state_tokens);
  require(record.temporal.size() == size && record.height.size() == size &&
          record.width.size() == size);
  for (const clefkit::RecordQuestion& question : record.questions) {
    require(is_inside(question.span) && !question.options.empty());
    for (const clefkit::RecordOption& option : question.options) require(is_inside(option.span));
  }
  for (const clefkit::MediaRun& run : record.media_runs) require(is_inside(run.span));
}

}  // namespace

// The first byte chooses limits and media, the rest is a request.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const clefkit::Tokenizer tokenizer(
      clefkit::read_file(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/micro/tokenizer.json",
                         1 << 20),
      "tokenizer.json");
  if (size == 0) return 0;
  clefkit::RecordLimits limits{.max_tokens = (data[0] & 1) != 0 ? 16384U : 300U};
  if ((data[0] & 2) != 0) limits.max_state_tokens = data[0] >> 4;
  if ((data[0] & 4) != 0) limits.overflow = clefkit::RecordLimits::Overflow::kTruncate;
  std::vector<MediaItem> media;
  if ((data[0] & 8) != 0) {
    media.push_back({.grid_h = 2, .grid_w = 4});
    media.push_back({.kind = MediaItem::Kind::kVideo,
                     .grid_t = 1,
                     .grid_h = 2,
                     .grid_w = 2,
                     .timestamps = {0.25}});
  }
  try {
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const clefkit::Request request = clefkit::parse_request(text, "fuzz");
    check(clefkit::encode_record(tokenizer, request, media, limits), limits);
  } catch (const clefkit::Error& error) {
    require(error.code() == clefkit::ErrorCode::kInvalidArgument ||
            error.code() == clefkit::ErrorCode::kTooLarge);
  }
  return 0;
}
