#include "clefkit/mil/wire_message.h"

#include "clefkit/base/bytes.h"

namespace clefkit::mil {
namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kLengthDelimited = 2;

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
}

void append_key(std::string& bytes, std::uint32_t field, std::uint64_t kind) {
  append_varint(bytes, std::uint64_t{field} << 3 | kind);
}

}  // namespace

void WireMessage::add_integer(std::uint32_t field, std::int64_t value) {
  append_key(bytes_, field, kVarint);
  append_varint(bytes_, static_cast<std::uint64_t>(value));
}

void WireMessage::add_text(std::uint32_t field, std::string_view text) {
  append_key(bytes_, field, kLengthDelimited);
  append_varint(bytes_, text.size());
  bytes_ += text;
}

void WireMessage::add_message(std::uint32_t field, const WireMessage& message) {
  add_text(field, message.bytes_);
}

void WireMessage::add_packed_integers(std::uint32_t field, std::span<const std::int64_t> values) {
  std::string packed;
  for (const std::int64_t value : values) append_varint(packed, static_cast<std::uint64_t>(value));
  add_text(field, packed);
}

void WireMessage::add_packed_floats(std::uint32_t field, std::span<const float> values) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(values.data());
  add_text(field, as_text({first, values.size_bytes()}));
}

}  // namespace clefkit::mil
