#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/safetensors/tensor_view.h"

namespace clefkit {

struct SafetensorsHeader {
  std::vector<TensorView> tensors;  // In the order of their bytes.
  std::map<std::string, std::string> metadata;
};

// Parses a whole file: 8 bytes of header length, JSON, data. The tensors must tile the data
// exactly, as the format demands. `where` names the file in errors. Throws Error(kCorruptData), and
// kUnsupported for an element type that is unknown here or data that is not aligned for its type.
SafetensorsHeader parse_safetensors(Bytes file, const std::string& where);

// One safetensors file, mapped and checked. Views stay valid when the object is moved.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<TensorView>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  // nullptr when there is no tensor of that name; a linear search.
  const TensorView* find(std::string_view name) const;

  // Gives the mapping away, for owners that keep only views; this object is then empty.
  MappedFile release() &&;

 private:
  std::filesystem::path path_;
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace clefkit
