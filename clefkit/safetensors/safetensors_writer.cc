#include "clefkit/safetensors/safetensors_writer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>
#include <utility>

#include "clefkit/base/json.h"

namespace clefkit {
namespace {

std::string header_json(const std::vector<TensorInfo>& tensors,
                        const SafetensorsMetadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    Json members = Json::object();
    for (const auto& [key, value] : metadata) members.set(key, value);
    json += "\"__metadata__\":" + to_string(members);
  }
  std::uint64_t begin = 0;
  for (const TensorInfo& tensor : tensors) {
    if (json.size() > 1) json += ',';
    append_json_string(json, tensor.name);
    const std::uint64_t end = begin + tensor.byte_count();
    json += fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        to_string(tensor.dtype), fmt::join(tensor.shape, ","), begin, end);
    begin = end;
  }
  json += '}';
  return json;
}

}  // namespace

std::uint64_t TensorInfo::byte_count() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{size_bytes(dtype)},
                         std::multiplies<>());
}

SafetensorsLayout plan_safetensors(std::vector<TensorInfo> tensors,
                                   const SafetensorsMetadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& left, const TensorInfo& right) {
    return std::tie(right.dtype, left.name) < std::tie(left.dtype, right.name);
  });
  SafetensorsLayout layout;
  std::string json = header_json(tensors, metadata);
  json.resize(align_up(json.size(), 8), ' ');
  layout.head.resize(sizeof(std::uint64_t));
  store_le<std::uint64_t>(reinterpret_cast<std::uint8_t*>(layout.head.data()), json.size());
  layout.head += json;
  for (const TensorInfo& tensor : tensors) layout.data_bytes += tensor.byte_count();
  layout.tensors = std::move(tensors);
  return layout;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorInfo> tensors,
                                     const SafetensorsMetadata& metadata)
    : layout_(plan_safetensors(std::move(tensors), metadata)), file_(path) {
  file_.write(layout_.head);
}

void SafetensorsWriter::write(Bytes bytes) {
  assert(file_.size_bytes() + bytes.size() <= layout_.file_bytes());
  file_.write(bytes);
}

void SafetensorsWriter::commit() {
  assert(file_.size_bytes() == layout_.file_bytes());
  file_.commit();
}

}  // namespace clefkit
