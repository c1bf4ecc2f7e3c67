#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/base/half.h"
#include "clefkit/mil/bit_packing.h"
#include "clefkit/mil/checker.h"
#include "clefkit/model/blob_weight.h"

// A weight file in memory for tests, and what its weights are as numbers.
namespace clefkit {

// Numbers between -1 and 1 that look random and are the same everywhere.
class TestNumbers {
 public:
  explicit TestNumbers(std::uint64_t seed) : state_(seed) {}
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(static_cast<std::int64_t>(state_ >> 40) - (1 << 23)) / (1 << 23);
  }
  std::vector<float> vector(std::size_t size, float scale) {
    std::vector<float> values(size);
    for (float& value : values) value = to_float(to_half(scale * next()));
    return values;
  }

 private:
  std::uint64_t state_;
};

class TestWeights {
 public:
  static constexpr char kPath[] = "@model_path/weights/test.bin";

  void add_fp16(const std::string& name, std::vector<std::size_t> shape,
                std::vector<float> values) {
    std::vector<std::uint8_t> bytes;
    for (const float value : values) append(to_half(value), bytes);
    records_.push_back({mil::BlobDataType::kFloat16, std::move(bytes), values.size()});
    order_.push_back(name);
    weights_[name] = {name, "test.bin", BlobWeight::Kind::kFp16, std::move(shape), 0, 0};
    values_[name] = std::move(values);
  }

  // [rows, columns], rows a multiple of 16.
  void add_lut6(const std::string& name, std::size_t rows, std::size_t columns, float scale,
                TestNumbers& numbers) {
    const std::vector<float> tables = numbers.vector(rows / 16 * 64, scale);
    std::vector<std::uint8_t> indices(rows * columns), table_bytes;
    std::vector<float> values(rows * columns);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      indices[i] = static_cast<std::uint8_t>((numbers.next() + 1) * 31.9f);
      values[i] = tables[i / columns / 16 * 64 + indices[i]];
    }
    for (const float value : tables) append(to_half(value), table_bytes);
    records_.push_back({mil::BlobDataType::kUInt6, mil::pack_bits(indices, 6), indices.size()});
    records_.push_back({mil::BlobDataType::kFloat16, std::move(table_bytes), tables.size()});
    order_.push_back(name);
    weights_[name] = {name, "test.bin", BlobWeight::Kind::kLut6, {rows, columns}, 0, 0};
    values_[name] = std::move(values);
  }

  // Lays the file out; nothing can be added afterwards.
  void finish() {
    mil::WeightBlobWriter writer(
        [&](Bytes bytes) { file_.insert(file_.end(), bytes.begin(), bytes.end()); },
        static_cast<std::uint32_t>(records_.size()));
    std::vector<std::uint64_t> offsets;
    for (const Record& record : records_) {
      offsets.push_back(writer.add(record.type, record.bytes, record.count));
    }
    writer.finish();
    // In the order in which they were added, which is that of the records.
    std::size_t next = 0;
    for (const std::string& name : order_) {
      BlobWeight& weight = weights_.at(name);
      weight.offset = offsets[next++];
      if (weight.kind == BlobWeight::Kind::kLut6) weight.palette_offset = offsets[next++];
    }
    reader_.emplace(file_, "test.bin");
  }

  const BlobWeight& operator[](const std::string& name) const { return weights_.at(name); }
  const std::vector<float>& values(const std::string& name) const { return values_.at(name); }
  mil::WeightFiles files() const { return {{kPath, &*reader_}}; }

 private:
  struct Record {
    mil::BlobDataType type;
    std::vector<std::uint8_t> bytes;
    std::size_t count;
  };

  static void append(Half half, std::vector<std::uint8_t>& bytes) {
    bytes.push_back(static_cast<std::uint8_t>(half.bits & 0xFF));
    bytes.push_back(static_cast<std::uint8_t>(half.bits >> 8));
  }

  std::vector<Record> records_;
  std::vector<std::string> order_;
  std::map<std::string, BlobWeight> weights_;
  std::map<std::string, std::vector<float>> values_;
  std::vector<std::uint8_t> file_;
  std::optional<mil::WeightBlobReader> reader_;
};

}  // namespace clefkit
