#pragma once

#include <cstdint>
#include <vector>

#include "clefkit/base/half.h"
#include "clefkit/mil/bit_packing.h"
#include "clefkit/mil/weight_blob.h"

// The worked example of the specification, for tests: a 1x1 convolution over a LUT-6 weight
// [32, 4, 1, 1], index of (o, i) = (4 o + i) mod 64, table 0 k/64, table 1 -k/64 (ane.md 3.3, 4.4).
namespace clefkit::mil {

inline constexpr char kExampleText[] = R"(program(1.3)
[buildInfo = dict<string, string>({{"coremlc-component-MIL", "3510.2.1"}, {"coremlc-version", "3505.4.1"}, {"coremltools-component-milinternal", ""}, {"coremltools-version", "9.0"}})]
{
    func main<ios18>(tensor<fp16, [1, 4, 1, 32]> x) {
        tensor<fp16, [32, 4, 1, 1]> w = constexpr_lut_to_dense(indices = tensor<uint6, [32, 4, 1, 1]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))), lut = tensor<fp16, [2, 1, 1, 1, 64, 1]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(256))))[name = string("w")];
        string pt = const()[name = string("pt"), val = string("valid")];
        tensor<int32, [2]> st = const()[name = string("st"), val = tensor<int32, [2]>([1, 1])];
        tensor<int32, [4]> pd = const()[name = string("pd"), val = tensor<int32, [4]>([0, 0, 0, 0])];
        tensor<int32, [2]> dl = const()[name = string("dl"), val = tensor<int32, [2]>([1, 1])];
        int32 gr = const()[name = string("gr"), val = int32(1)];
        tensor<fp16, [1, 32, 1, 32]> y = conv(dilations = dl, groups = gr, pad = pd, pad_type = pt, strides = st, weight = w, x = x)[name = string("y")];
    } -> (y);
}
)";

inline std::vector<std::uint8_t> example_weights() {
  std::vector<std::uint8_t> file, indices(128);
  std::vector<Half> tables(128);
  for (std::size_t i = 0; i < 128; ++i) {
    indices[i] = static_cast<std::uint8_t>(i % 64);
    const float value = static_cast<float>(i % 64) / 64.0f;
    tables[i] = to_half(i < 64 ? value : -value);
  }
  WeightBlobWriter writer([&](Bytes bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); },
                          2);
  writer.add(BlobDataType::kUInt6, pack_bits(indices, 6), 128);
  writer.add(BlobDataType::kFloat16,
             {reinterpret_cast<const std::uint8_t*>(tables.data()), tables.size() * sizeof(Half)},
             tables.size());
  writer.finish();
  return file;
}

}  // namespace clefkit::mil
