#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/file_io.h"
#include "clefkit/safetensors/dtype.h"

namespace clefkit {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<std::size_t> shape;

  std::uint64_t byte_count() const;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Where everything goes in a safetensors file, byte for byte as the format's usual writer places
// it: tensors by type (later ones of DType first), then by name; the header is padded with spaces
// to a multiple of 8 bytes.
struct SafetensorsLayout {
  std::vector<TensorInfo> tensors;  // In file order.
  std::string head;                 // Header length and header, up to the data.
  std::uint64_t data_bytes = 0;

  std::uint64_t file_bytes() const { return head.size() + data_bytes; }
};

// Names are unique. An empty `metadata` writes no `__metadata__`.
SafetensorsLayout plan_safetensors(std::vector<TensorInfo> tensors,
                                   const SafetensorsMetadata& metadata);

// Streams one file: declare the tensors, then append their bytes in the order of layout().tensors,
// cut as you like. Nothing is visible under `path` before commit().
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors,
                    const SafetensorsMetadata& metadata = {{"format", "pt"}});

  const SafetensorsLayout& layout() const { return layout_; }
  // Throws Error(kUnavailable) when the disk is full.
  void write(Bytes bytes);
  // All bytes have been written.
  void commit();

 private:
  SafetensorsLayout layout_;
  AtomicFile file_;
};

}  // namespace clefkit
