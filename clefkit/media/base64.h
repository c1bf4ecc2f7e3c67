#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit {

// Bytes of base64 text, in the standard alphabet or the one for URLs (RFC 4648). White space is
// passed over, padding may be left out. Nothing for any other text.
std::optional<std::vector<std::uint8_t>> decode_base64(std::string_view text);
// In the standard alphabet, with padding.
std::string encode_base64(std::string_view bytes);

}  // namespace clefkit
