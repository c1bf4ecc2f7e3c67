#include "clefkit/safetensors/dtype.h"

#include <algorithm>
#include <array>

namespace clefkit {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t size_bytes;
};

// By the value of DType.
constexpr std::array<DTypeInfo, 15> kTypes{{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E4M3", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"F64", 8},
                                            {"I64", 8},
                                            {"U64", 8}}};

}  // namespace

std::size_t size_bytes(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].size_bytes; }

std::string_view to_string(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const DTypeInfo& info) { return info.name == name; });
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<DType>(found - kTypes.begin());
}

}  // namespace clefkit
