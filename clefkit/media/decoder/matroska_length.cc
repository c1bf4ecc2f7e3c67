#include "clefkit/media/decoder/matroska_length.h"

#include <bit>
#include <cstdint>
#include <optional>

#include "clefkit/base/error.h"

namespace clefkit::decoder {
namespace {

constexpr std::uint64_t kHeader = 0x1A45DFA3, kSegment = 0x18538067;

// EBML's numbers (RFC 8794, section 4): as many leading zero bits as bytes follow the first.
class EbmlCursor {
 public:
  explicit EbmlCursor(Bytes bytes) : rest_(bytes) {}

  std::optional<std::uint64_t> id() { return number(true); }
  // Nothing for the size that means "unknown": all ones.
  std::optional<std::uint64_t> size() {
    const auto value = number(false);
    const bool is_unknown = value && *value == (std::uint64_t{1} << (7 * bytes_)) - 1;
    return is_unknown ? std::nullopt : value;
  }
  bool skip(std::uint64_t count) {
    if (count > rest_.size()) return false;
    rest_ = rest_.subspan(count);
    return true;
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::optional<std::uint64_t> number(bool keeps_marker) {
    if (rest_.empty() || rest_[0] == 0) return std::nullopt;
    bytes_ = static_cast<unsigned>(std::countl_zero(rest_[0])) + 1;
    if (bytes_ > rest_.size()) return std::nullopt;
    std::uint64_t value = keeps_marker ? rest_[0] : rest_[0] & (0xFFU >> bytes_);
    for (unsigned i = 1; i < bytes_; ++i) value = value << 8 | rest_[i];
    rest_ = rest_.subspan(bytes_);
    return value;
  }

  Bytes rest_;
  unsigned bytes_ = 0;  // Of the last number.
};

}  // namespace

void check_matroska_length(Bytes file) {
  EbmlCursor cursor(file);
  if (cursor.id() != kHeader) return;
  const auto header = cursor.size();
  if (!header || !cursor.skip(*header) || cursor.id() != kSegment) return;
  const auto segment = cursor.size();
  if (segment && *segment > cursor.left()) {
    throw_error(ErrorCode::kInvalidArgument, "",
                "a clip of which {} bytes are missing at the end, expected a whole one",
                *segment - cursor.left());
  }
}

}  // namespace clefkit::decoder
