#include "clefkit/programs/program_weights.h"

#include <utility>

#include "clefkit/mil/program.h"
#include "clefkit/programs/fp16_tensor.h"

namespace clefkit {

ProgramWeights::ProgramWeights(const Model& model, const PlannedProgram& program) {
  std::uint32_t records = 0;
  for (const std::string& name : program.tensors) {
    records += std::holds_alternative<Lut6Matrix>(model.weight(name)) ? 2 : 1;
  }
  mil::WeightBlobWriter writer(
      [&](Bytes bytes) { file_.insert(file_.end(), bytes.begin(), bytes.end()); }, records);
  for (const std::string& name : program.tensors) {
    BlobWeight weight{name, mil::kWeightPath, BlobWeight::Kind::kFp16, {}, 0, 0};
    if (const auto* lut = std::get_if<Lut6Matrix>(&model.weight(name))) {
      const Lut6Matrix::Shape& shape = lut->shape();
      weight.kind = BlobWeight::Kind::kLut6;
      weight.shape = {shape.rows, shape.columns};
      weight.offset =
          writer.add(mil::BlobDataType::kUInt6, lut->packed_indices(), shape.rows * shape.columns);
      // The palettes lie one after the other.
      const std::size_t entries = shape.palette_count() * Lut6Matrix::kPaletteSize;
      const auto* const first = reinterpret_cast<const std::uint8_t*>(lut->palette(0).data());
      weight.palette_offset =
          writer.add(mil::BlobDataType::kFloat16, {first, entries * sizeof(Half)}, entries);
    } else {
      const TensorView& tensor = model.tensor(name);
      weight.shape = tensor.shape;
      const std::vector<std::uint8_t> bytes =
          tensor.dtype == DType::kF16 ? std::vector(tensor.bytes.begin(), tensor.bytes.end())
                                      : to_fp16_bytes(tensor);
      weight.offset = writer.add(mil::BlobDataType::kFloat16, bytes, tensor.element_count());
    }
    weights_.emplace(name, std::move(weight));
  }
  writer.finish();
}

}  // namespace clefkit
