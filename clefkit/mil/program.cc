#include "clefkit/mil/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace clefkit::mil {
namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  std::optional<BlobDataType> blob;
};

constexpr std::array<TypeRow, 17> kTypes{{
    {DataType::kFloat16, "fp16", BlobDataType::kFloat16},
    {DataType::kFloat32, "fp32", BlobDataType::kFloat32},
    {DataType::kInt4, "int4", BlobDataType::kInt4},
    {DataType::kInt8, "int8", BlobDataType::kInt8},
    {DataType::kInt16, "int16", BlobDataType::kInt16},
    {DataType::kInt32, "int32", BlobDataType::kInt32},
    {DataType::kUInt1, "uint1", BlobDataType::kUInt1},
    {DataType::kUInt2, "uint2", BlobDataType::kUInt2},
    {DataType::kUInt3, "uint3", BlobDataType::kUInt3},
    {DataType::kUInt4, "uint4", BlobDataType::kUInt4},
    {DataType::kUInt6, "uint6", BlobDataType::kUInt6},
    {DataType::kUInt8, "uint8", BlobDataType::kUInt8},
    {DataType::kUInt16, "uint16", BlobDataType::kUInt16},
    {DataType::kUInt32, "uint32", BlobDataType::kUInt32},
    {DataType::kUInt64, "uint64", std::nullopt},
    {DataType::kBool, "bool", std::nullopt},
    {DataType::kString, "string", std::nullopt},
}};

const TypeRow& row_of(DataType type) { return *std::ranges::find(kTypes, type, &TypeRow::type); }

template <typename Pairs>
auto find_second(Pairs& pairs, std::string_view name) -> decltype(&pairs.front().second) {
  for (auto& [key, value] : pairs) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

std::string_view to_string(DataType type) { return row_of(type).name; }

std::optional<DataType> data_type(std::string_view name) {
  const auto row = std::ranges::find(kTypes, name, &TypeRow::name);
  return row == kTypes.end() ? std::nullopt : std::optional(row->type);
}

bool is_float(DataType type) { return type == DataType::kFloat16 || type == DataType::kFloat32; }

bool is_integer(DataType type) {
  return !is_float(type) && type != DataType::kBool && type != DataType::kString;
}

std::optional<BlobDataType> blob_type(DataType type) { return row_of(type).blob; }

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count))
      return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

std::string to_string(const ValueType& type) {
  if (type.shape.empty()) return std::string(to_string(type.data_type));
  return fmt::format("tensor<{}, [{}]>", to_string(type.data_type), fmt::join(type.shape, ", "));
}

Value::Value(ValueType the_type, Elements the_elements)
    : type(std::move(the_type)), elements(std::move(the_elements)) {}

Value Value::scalar(DataType type, std::int64_t value) {
  return {{type}, std::vector<std::int64_t>{value}};
}
Value Value::scalar(DataType type, double value) { return {{type}, std::vector<double>{value}}; }
Value Value::boolean(bool value) { return scalar(DataType::kBool, std::int64_t{value}); }
Value Value::string(std::string text) {
  return {{DataType::kString}, std::vector<std::string>{std::move(text)}};
}
Value Value::integers(std::vector<std::int64_t> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return {{DataType::kInt32, {size}}, std::move(values)};
}

const Argument* Statement::argument(std::string_view name) const {
  return find_second(arguments, name);
}

const Value* Statement::attribute(std::string_view name) const {
  return find_second(attributes, name);
}

std::vector<Variable> output_variables(const Function& function) {
  std::vector<Variable> variables;
  for (const std::string& name : function.outputs) {
    for (const Statement& statement : function.statements) {
      const auto found = std::ranges::find(statement.outputs, name, &Variable::name);
      if (found != statement.outputs.end()) variables.push_back(*found);
    }
  }
  return variables;
}

}  // namespace clefkit::mil
