#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "clefkit/mil/weight_blob.h"

// A program in Core ML's Model Intermediate Language, as data: what the emitter makes, the printer
// writes and the parser reads. Nothing here knows what an operation does. Names are Core ML's.
namespace clefkit::mil {

enum class DataType {
  kFloat16,
  kFloat32,
  kInt4,
  kInt8,
  kInt16,
  kInt32,
  kUInt1,
  kUInt2,
  kUInt3,
  kUInt4,
  kUInt6,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  kString,
};

// "fp16", "int32", "string", …
std::string_view to_string(DataType type);
std::optional<DataType> data_type(std::string_view name);
bool is_float(DataType type);
bool is_integer(DataType type);
// How the weight file stores elements of that type; nothing for kUInt64, kBool and kString.
std::optional<BlobDataType> blob_type(DataType type);

using Shape = std::vector<std::int64_t>;
// A size as a dimension.
constexpr std::int64_t dim(std::size_t size) { return static_cast<std::int64_t>(size); }

// The product of the dimensions, 1 of none; the largest number when it does not fit.
std::int64_t element_count(const Shape& shape);

// A tensor's type. One of rank 0 is a scalar.
struct ValueType {
  DataType data_type = DataType::kFloat16;
  Shape shape{};

  bool operator==(const ValueType&) const = default;
};

// "tensor<fp16, [1, 4]>"; a scalar's is "fp16".
std::string to_string(const ValueType& type);

// A blob of the weight file: BLOBFILE(path, offset). The offset is that of its record.
struct BlobReference {
  std::string path;
  std::uint64_t offset = 0;

  bool operator==(const BlobReference&) const = default;
};

// A value that stands in the program: elements in row-major order, or where they are.
struct Value {
  // Integers and booleans; floats, each exact in its type; strings.
  using Elements = std::variant<std::vector<std::int64_t>, std::vector<double>,
                                std::vector<std::string>, BlobReference>;
  ValueType type{};
  Elements elements{};

  Value() = default;
  Value(ValueType the_type, Elements the_elements);
  bool operator==(const Value&) const = default;

  static Value scalar(DataType type, std::int64_t value);
  static Value scalar(DataType type, double value);
  static Value boolean(bool value);
  static Value string(std::string text);
  static Value integers(std::vector<std::int64_t> values);  // A vector of int32.
};

// What an operation gets: the name of an earlier result, a tuple of names, or a value.
using Argument = std::variant<std::string, std::vector<std::string>, Value>;

struct Variable {
  std::string name;
  ValueType type{};

  bool operator==(const Variable&) const = default;
};

// `TYPE name, … = op(argument = …, …)[attribute = …, …];`
struct Statement {
  std::vector<Variable> outputs{};
  std::string op{};
  std::vector<std::pair<std::string, Argument>> arguments{};
  std::vector<std::pair<std::string, Value>> attributes{};
  std::size_t line = 0;  // Where the parser read it; 0 when it was made here.

  const Argument* argument(std::string_view name) const;
  const Value* attribute(std::string_view name) const;
};

struct Function {
  std::string name = "main";
  std::string opset = "ios18";
  std::vector<Variable> inputs{};
  std::vector<Statement> statements{};
  std::vector<std::string> outputs{};
};

// The results that a function returns, in its order. Names that no statement defines are left out.
std::vector<Variable> output_variables(const Function& function);

// What a program calls its weight file, as Core ML's own do.
inline constexpr char kWeightPath[] = "@model_path/weights/weight.bin";

struct Program {
  std::string version = "1.3";
  std::vector<std::pair<std::string, std::string>> build_info{};
  std::vector<Function> functions{};
};

}  // namespace clefkit::mil
