#include "clefkit/safetensors/safetensors_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"

namespace clefkit {
namespace {

constexpr std::size_t kLengthBytes = 8;
// The format allows 100 MB. No published header comes near 1 MB, and parsing takes many times the
// header's size in memory.
constexpr std::size_t kHeaderLimit = std::size_t{32} << 20;
constexpr std::string_view kMetadataKey = "__metadata__";

// A tensor's place before the tiling of the data has been checked.
struct Entry {
  TensorView tensor;
  std::size_t begin = 0;
  std::size_t end = 0;
};

[[noreturn]] void corrupt(const std::string& where, const std::string& message) {
  throw Error(ErrorCode::kCorruptData, where, message);
}

std::vector<std::size_t> unsigned_array(const Json* value, const std::string& where,
                                        std::string_view key) {
  if (value == nullptr || !value->is_array()) {
    corrupt(where, fmt::format("no array `{}`", key));
  }
  std::vector<std::size_t> numbers;
  numbers.reserve(value->items().size());
  for (const Json& item : value->items()) {
    const auto number = item.as_uint64();
    if (!number) corrupt(where, fmt::format("`{}` holds what is no unsigned integer", key));
    numbers.push_back(*number);
  }
  return numbers;
}

// Empty when the product does not fit.
std::optional<std::size_t> checked_byte_count(const std::vector<std::size_t>& shape, DType dtype) {
  std::size_t product = size_bytes(dtype);
  for (const std::size_t extent : shape) {
    if (extent != 0 && product > std::numeric_limits<std::size_t>::max() / extent) return {};
    product *= extent;
  }
  return product;
}

Entry parse_entry(const std::string& name, const Json& value, Bytes data, const std::string& file) {
  const std::string where = file + ": " + name;
  if (!value.is_object()) {
    corrupt(where, fmt::format("found {}, expected an object", value.kind_name()));
  }
  const Json* const type = value.find("dtype");
  if (type == nullptr || !type->is_string()) corrupt(where, "no string `dtype`");
  const std::optional<DType> dtype = parse_dtype(type->string());
  if (!dtype) {
    throw_error(ErrorCode::kCorruptData, where, "element type `{}` is not known", type->string());
  }
  std::vector<std::size_t> shape = unsigned_array(value.find("shape"), where, "shape");
  const auto offsets = unsigned_array(value.find("data_offsets"), where, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    corrupt(where, "`data_offsets` is not a begin and an end");
  }
  if (offsets[1] > data.size()) {
    corrupt(where, fmt::format("ends at byte {} of the data, but the file holds only {}",
                               offsets[1], data.size()));
  }
  const std::size_t found = offsets[1] - offsets[0];
  const auto expected = checked_byte_count(shape, *dtype);
  if (!expected || *expected != found) {
    corrupt(where, fmt::format("{} bytes, expected {} for {} of shape {}", found,
                               expected ? std::to_string(*expected) : "more than 2^64",
                               type->string(), shape_text(shape)));
  }
  const Bytes bytes = data.subspan(offsets[0], found);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % size_bytes(*dtype) != 0) {
    throw_error(ErrorCode::kCorruptData, where,
                "data begins at byte {}, which is not aligned for {}", offsets[0], type->string());
  }
  return {{name, *dtype, std::move(shape), bytes}, offsets[0], offsets[1]};
}

// As the format's own readers demand: the tensors follow each other without gap or overlap.
void check_tiling(const std::vector<Entry>& entries, std::size_t data_bytes,
                  const std::string& file) {
  std::size_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != position) {
      corrupt(file + ": " + entry.tensor.name,
              fmt::format("begins at byte {} of the data, expected {} where the tensor before ends",
                          entry.begin, position));
    }
    position = entry.end;
  }
  if (position != data_bytes) {
    corrupt(file,
            fmt::format("{} bytes follow the last tensor, expected none", data_bytes - position));
  }
}

std::map<std::string, std::string> parse_metadata(const Json& value, const std::string& file) {
  if (!value.is_object()) corrupt(file, "`__metadata__` is no object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.members()) {
    if (!text.is_string()) corrupt(file, "`__metadata__` holds what is no string");
    metadata.emplace(key, text.string());
  }
  return metadata;
}

}  // namespace

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

SafetensorsHeader parse_safetensors(Bytes file, const std::string& where) {
  if (file.size() < kLengthBytes) {
    corrupt(where,
            fmt::format("{} bytes, expected at least the 8 of a header length", file.size()));
  }
  const auto length = load_le<std::uint64_t>(file.data());
  const Bytes rest = file.subspan(kLengthBytes);
  if (length > kHeaderLimit) {
    corrupt(where, fmt::format("a header of {} bytes, expected at most {}", length, kHeaderLimit));
  }
  if (length > rest.size()) {
    corrupt(where, fmt::format("a header of {} bytes, but only {} follow: the file is truncated",
                               length, rest.size()));
  }
  const Json header = parse_json(as_text(rest.first(length)), where, {.bytes = kHeaderLimit});
  if (!header.is_object()) {
    corrupt(where, fmt::format("the header is {}, expected an object", header.kind_name()));
  }

  const Bytes data = rest.subspan(length);
  SafetensorsHeader result;
  std::vector<Entry> entries;
  entries.reserve(header.members().size());
  for (const auto& [name, value] : header.members()) {
    if (name == kMetadataKey) {
      result.metadata = parse_metadata(value, where);
    } else {
      entries.push_back(parse_entry(name, value, data, where));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& left, const Entry& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  check_tiling(entries, data.size(), where);
  result.tensors.reserve(entries.size());
  for (Entry& entry : entries) result.tensors.push_back(std::move(entry.tensor));
  return result;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(path), header_(parse_safetensors(file_.bytes(), path.string())) {}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == header_.tensors.end() ? nullptr : &*found;
}

MappedFile SafetensorsFile::release() && {
  header_ = {};
  return std::move(file_);
}

}  // namespace clefkit
