#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace clefkit::mil {

// A message in protobuf's wire format, written field by field. It knows no schema: the caller gives
// numbers and kinds. Every field that is added is written, a zero or an empty text too, as members
// of a oneof and of a list need it; readers take that for the default, which it is.
//
// A field is the varint `number << 3 | kind`, then a varint (kind 0) or a length and that many
// bytes (kind 2). A varint has seven bits a byte, lowest first, and the top bit where more follow.
class WireMessage {
 public:
  // int32, int64, uint64, bool or an enumeration. A negative number takes ten bytes.
  void add_integer(std::uint32_t field, std::int64_t value);
  void add_text(std::uint32_t field, std::string_view text);  // Or bytes.
  void add_message(std::uint32_t field, const WireMessage& message);
  // Lists of numbers, which stand without their kinds in one field.
  void add_packed_integers(std::uint32_t field, std::span<const std::int64_t> values);
  void add_packed_floats(std::uint32_t field, std::span<const float> values);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace clefkit::mil
