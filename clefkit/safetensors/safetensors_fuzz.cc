#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/safetensors/safetensors_file.h"

// Whatever parses has tensors that lie inside the file and have the bytes their shape needs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Real files are mapped at a page; the fuzzer's buffer may lie anywhere.
  std::vector<std::uint64_t> aligned(size / 8 + 1);
  std::memcpy(aligned.data(), data, size);
  const clefkit::Bytes file(reinterpret_cast<const std::uint8_t*>(aligned.data()), size);
  try {
    for (const clefkit::TensorView& tensor : clefkit::parse_safetensors(file, "fuzz").tensors) {
      const std::size_t elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                                   std::size_t{1}, std::multiplies<>());
      if (elements * size_bytes(tensor.dtype) != tensor.bytes.size()) std::abort();
      if (tensor.bytes.data() < file.data() ||
          tensor.bytes.data() + tensor.bytes.size() > file.data() + file.size()) {
        std::abort();
      }
    }
  } catch (const clefkit::Error&) {
  }
  return 0;
}
