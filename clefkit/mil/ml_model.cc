#include "clefkit/mil/ml_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "clefkit/base/error.h"
#include "clefkit/base/half.h"
#include "clefkit/mil/bit_packing.h"
#include "clefkit/mil/wire_message.h"

namespace clefkit::mil {
namespace {

// Numbers of Core ML's schema, as the descriptors of its public tools give them.
namespace field {
constexpr std::uint32_t kMapKey = 1, kMapValue = 2;  // Of every map entry.
namespace model {
constexpr std::uint32_t kSpecificationVersion = 1, kDescription = 2, kMlProgram = 502;
}
namespace description {
constexpr std::uint32_t kInput = 1, kOutput = 10, kMetadata = 100;
}
namespace metadata {
constexpr std::uint32_t kShortDescription = 1, kVersion = 2, kLicense = 4;
}
namespace feature {
constexpr std::uint32_t kName = 1, kType = 3, kMultiArrayType = 5, kShape = 1, kDataType = 2;
}
namespace program {
constexpr std::uint32_t kVersion = 1, kFunctions = 2, kAttributes = 4;
}
namespace function {
constexpr std::uint32_t kInputs = 1, kOpset = 2, kBlocks = 3;
}
namespace block {
constexpr std::uint32_t kOutputs = 2, kOperations = 3;
}
namespace operation {
constexpr std::uint32_t kType = 1, kInputs = 2, kOutputs = 3, kAttributes = 5;
}
namespace argument {
constexpr std::uint32_t kBindings = 1, kName = 1, kValue = 2;
}
namespace named_type {
constexpr std::uint32_t kName = 1, kType = 2;
}
namespace value_type {
constexpr std::uint32_t kTensor = 1, kDictionary = 4;
constexpr std::uint32_t kDataType = 1, kRank = 2, kDimensions = 3, kConstant = 1, kSize = 1;
}  // namespace value_type
namespace value {
constexpr std::uint32_t kType = 2, kImmediate = 3, kBlobFile = 5;
constexpr std::uint32_t kTensor = 1, kDictionary = 4;
constexpr std::uint32_t kFileName = 1, kOffset = 2;
}  // namespace value
namespace tensor {
constexpr std::uint32_t kFloats = 1, kInts = 2, kBools = 3, kStrings = 4, kLongInts = 5, kBytes = 7;
constexpr std::uint32_t kValues = 1;  // Of each of them.
}  // namespace tensor
}  // namespace field

struct Opset {
  std::string_view in_text, in_model;
  std::int64_t specification_version;
};
constexpr std::array<Opset, 5> kOpsets{{{"ios15", "CoreML5", 6},
                                        {"ios16", "CoreML6", 7},
                                        {"ios17", "CoreML7", 8},
                                        {"ios18", "CoreML8", 9},
                                        {"ios26", "CoreML9", 10}}};

// The number of protobuf's largest message.
constexpr std::size_t kMaxModelBytes = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const std::string& where, std::string_view message) {
  throw_error(ErrorCode::kUnsupported, where, "{}", message);
}

const Opset& opset_of(const Function& function) {
  const auto* const opset = std::ranges::find(kOpsets, function.opset, &Opset::in_text);
  if (opset == kOpsets.end()) {
    refuse(function.name,
           fmt::format("opset {}, expected ios15 to ios18 or ios26", function.opset));
  }
  return *opset;
}

std::int64_t schema_number(DataType type) {
  switch (type) {
    case DataType::kBool:
      return 1;
    case DataType::kString:
      return 2;
    case DataType::kFloat16:
      return 10;
    case DataType::kFloat32:
      return 11;
    case DataType::kInt8:
      return 21;
    case DataType::kInt16:
      return 22;
    case DataType::kInt32:
      return 23;
    case DataType::kInt4:
      return 25;
    case DataType::kUInt8:
      return 31;
    case DataType::kUInt16:
      return 32;
    case DataType::kUInt32:
      return 33;
    case DataType::kUInt64:
      return 34;
    case DataType::kUInt4:
      return 35;
    case DataType::kUInt2:
      return 36;
    case DataType::kUInt1:
      return 37;
    case DataType::kUInt6:
      return 38;
    case DataType::kUInt3:
      return 39;
  }
  return 0;
}

// The element types of multiarrays are numbered apart.
std::optional<std::int64_t> multiarray_number(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return 0x10000 | 16;
    case DataType::kFloat32:
      return 0x10000 | 32;
    case DataType::kInt8:
      return 0x20000 | 8;
    case DataType::kInt32:
      return 0x20000 | 32;
    default:
      return std::nullopt;
  }
}

template <typename Visit>
void for_each_value(const Program& program, const Visit& visit) {
  for (const Function& function : program.functions) {
    for (const Statement& statement : function.statements) {
      for (const auto& [name, argument] : statement.arguments) {
        if (const auto* value = std::get_if<Value>(&argument)) visit(*value);
      }
      for (const auto& [name, value] : statement.attributes) visit(value);
    }
  }
}

void check_one_weight_file(const Program& program) {
  const std::string* path = nullptr;
  for_each_value(program, [&](const Value& value) {
    const auto* blob = std::get_if<BlobReference>(&value.elements);
    if (blob == nullptr) return;
    if (path == nullptr) path = &blob->path;
    if (*path != blob->path) {
      refuse(blob->path,
             fmt::format("a second weight file beside {}, expected one in an ML Package", *path));
    }
  });
}

WireMessage type_message(const ValueType& type) {
  WireMessage tensor;
  tensor.add_integer(field::value_type::kDataType, schema_number(type.data_type));
  tensor.add_integer(field::value_type::kRank, dim(type.shape.size()));
  for (const std::int64_t size : type.shape) {
    WireMessage constant, dimension;
    constant.add_integer(field::value_type::kSize, size);
    dimension.add_message(field::value_type::kConstant, constant);
    tensor.add_message(field::value_type::kDimensions, dimension);
  }
  WireMessage message;
  message.add_message(field::value_type::kTensor, tensor);
  return message;
}

WireMessage named_type_message(const Variable& variable) {
  WireMessage message;
  message.add_text(field::named_type::kName, variable.name);
  message.add_message(field::named_type::kType, type_message(variable.type));
  return message;
}

// Elements as they lie in memory, those below a byte packed.
std::string raw_elements(DataType type, const std::vector<std::int64_t>& values) {
  const unsigned bits = bits_per_element(*blob_type(type));
  std::vector<std::uint8_t> bytes;
  for (const std::int64_t value : values) {
    for (unsigned shift = 0; shift < bits; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  }
  if (bits < 8) {
    for (std::uint8_t& byte : bytes) byte &= static_cast<std::uint8_t>((1u << bits) - 1);
    bytes = pack_bits(bytes, bits);
  }
  return std::string(as_text(bytes));
}

WireMessage integers_message(DataType type, const std::vector<std::int64_t>& values) {
  WireMessage list, tensor;
  switch (type) {
    case DataType::kBool:
      list.add_packed_integers(field::tensor::kValues, values);
      tensor.add_message(field::tensor::kBools, list);
      break;
    case DataType::kUInt64:
      list.add_packed_integers(field::tensor::kValues, values);
      tensor.add_message(field::tensor::kLongInts, list);
      break;
    case DataType::kInt16:
    case DataType::kUInt16:
    case DataType::kInt32:
      list.add_packed_integers(field::tensor::kValues, values);
      tensor.add_message(field::tensor::kInts, list);
      break;
    default:
      list.add_text(field::tensor::kValues, raw_elements(type, values));
      tensor.add_message(field::tensor::kBytes, list);
  }
  return tensor;
}

WireMessage floats_message(DataType type, const std::vector<double>& values) {
  WireMessage list, tensor;
  if (type == DataType::kFloat32) {
    const std::vector<float> floats(values.begin(), values.end());
    list.add_packed_floats(field::tensor::kValues, floats);
    tensor.add_message(field::tensor::kFloats, list);
  } else {
    std::vector<std::int64_t> bits(values.size());
    std::ranges::transform(values, bits.begin(), [](double value) { return to_half(value).bits; });
    list.add_text(field::tensor::kValues, raw_elements(DataType::kFloat16, bits));
    tensor.add_message(field::tensor::kBytes, list);
  }
  return tensor;
}

WireMessage tensor_message(const Value& value) {
  const DataType type = value.type.data_type;
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value.elements)) {
    if (!is_float(type)) return integers_message(type, *integers);
    return floats_message(type, {integers->begin(), integers->end()});
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&value.elements)) {
    return floats_message(type, *floats);
  }
  WireMessage list, tensor;
  for (const std::string& text : std::get<std::vector<std::string>>(value.elements)) {
    list.add_text(field::tensor::kValues, text);
  }
  tensor.add_message(field::tensor::kStrings, list);
  return tensor;
}

WireMessage value_message(const Value& value) {
  WireMessage message;
  message.add_message(field::value::kType, type_message(value.type));
  if (const auto* blob = std::get_if<BlobReference>(&value.elements)) {
    WireMessage file;
    file.add_text(field::value::kFileName, kWeightPath);
    file.add_integer(field::value::kOffset, static_cast<std::int64_t>(blob->offset));
    message.add_message(field::value::kBlobFile, file);
  } else {
    WireMessage immediate;
    immediate.add_message(field::value::kTensor, tensor_message(value));
    message.add_message(field::value::kImmediate, immediate);
  }
  return message;
}

void add_map_entry(WireMessage& message, std::uint32_t number, std::string_view key,
                   const WireMessage& value) {
  WireMessage entry;
  entry.add_text(field::kMapKey, key);
  entry.add_message(field::kMapValue, value);
  message.add_message(number, entry);
}

WireMessage argument_message(const Argument& argument) {
  WireMessage message;
  const auto add_name = [&](const std::string& name) {
    WireMessage binding;
    binding.add_text(field::argument::kName, name);
    message.add_message(field::argument::kBindings, binding);
  };
  if (const auto* name = std::get_if<std::string>(&argument)) {
    add_name(*name);
  } else if (const auto* names = std::get_if<std::vector<std::string>>(&argument)) {
    for (const std::string& each : *names) add_name(each);
  } else {
    WireMessage binding;
    binding.add_message(field::argument::kValue, value_message(std::get<Value>(argument)));
    message.add_message(field::argument::kBindings, binding);
  }
  return message;
}

WireMessage operation_message(const Statement& statement) {
  WireMessage message;
  message.add_text(field::operation::kType, statement.op);
  for (const auto& [name, argument] : statement.arguments) {
    add_map_entry(message, field::operation::kInputs, name, argument_message(argument));
  }
  for (const Variable& output : statement.outputs) {
    message.add_message(field::operation::kOutputs, named_type_message(output));
  }
  for (const auto& [name, value] : statement.attributes) {
    add_map_entry(message, field::operation::kAttributes, name, value_message(value));
  }
  return message;
}

WireMessage function_message(const Function& function, const Opset& opset) {
  WireMessage block;
  for (const std::string& name : function.outputs) block.add_text(field::block::kOutputs, name);
  for (const Statement& statement : function.statements) {
    block.add_message(field::block::kOperations, operation_message(statement));
  }
  WireMessage message;
  for (const Variable& input : function.inputs) {
    message.add_message(field::function::kInputs, named_type_message(input));
  }
  message.add_text(field::function::kOpset, opset.in_model);
  add_map_entry(message, field::function::kBlocks, opset.in_model, block);
  return message;
}

WireMessage build_info_message(const Program& program) {
  WireMessage dictionary;
  for (const auto& [key, value] : program.build_info) {
    WireMessage pair;
    pair.add_message(field::kMapKey, value_message(Value::string(key)));
    pair.add_message(field::kMapValue, value_message(Value::string(value)));
    dictionary.add_message(1, pair);
  }
  WireMessage of_strings, type, immediate, message;
  of_strings.add_message(field::kMapKey, type_message({DataType::kString}));
  of_strings.add_message(field::kMapValue, type_message({DataType::kString}));
  type.add_message(field::value_type::kDictionary, of_strings);
  immediate.add_message(field::value::kDictionary, dictionary);
  message.add_message(field::value::kType, type);
  message.add_message(field::value::kImmediate, immediate);
  return message;
}

WireMessage program_message(const Program& program, const Opset& opset) {
  const Function& function = program.functions.front();
  WireMessage message;
  message.add_integer(field::program::kVersion, 1);  // Of the schema, not of the text.
  add_map_entry(message, field::program::kFunctions, function.name,
                function_message(function, opset));
  add_map_entry(message, field::program::kAttributes, "buildInfo", build_info_message(program));
  return message;
}

WireMessage feature_message(const Variable& variable) {
  const auto number = multiarray_number(variable.type.data_type);
  if (!number || variable.type.shape.empty()) {
    refuse(variable.name, fmt::format("an input or output {}, expected a tensor of fp16, fp32, "
                                      "int8 or int32",
                                      to_string(variable.type)));
  }
  WireMessage array, type, message;
  array.add_packed_integers(field::feature::kShape, variable.type.shape);
  array.add_integer(field::feature::kDataType, *number);
  type.add_message(field::feature::kMultiArrayType, array);
  message.add_text(field::feature::kName, variable.name);
  message.add_message(field::feature::kType, type);
  return message;
}

WireMessage description_message(const Function& function, const MlModelInfo& info) {
  WireMessage message, metadata;
  for (const Variable& input : function.inputs) {
    message.add_message(field::description::kInput, feature_message(input));
  }
  const std::vector<Variable> outputs = output_variables(function);
  if (outputs.size() != function.outputs.size()) {
    refuse(function.name, "an output that no statement defines, expected a statement for each");
  }
  for (const Variable& output : outputs) {
    message.add_message(field::description::kOutput, feature_message(output));
  }
  const auto add = [&](std::uint32_t number, const std::string& text) {
    if (!text.empty()) metadata.add_text(number, text);
  };
  add(field::metadata::kShortDescription, info.description);
  add(field::metadata::kVersion, info.version);
  add(field::metadata::kLicense, info.license);
  message.add_message(field::description::kMetadata, metadata);
  return message;
}

}  // namespace

std::string to_ml_model(const Program& program, const MlModelInfo& info) {
  if (program.functions.size() != 1 || program.functions.front().name != "main") {
    std::string names;
    for (const Function& function : program.functions) names += " " + function.name;
    refuse("program", fmt::format("the functions{}, expected main alone",
                                  names.empty() ? " are none" : names));
  }
  check_one_weight_file(program);
  const Function& function = program.functions.front();
  const Opset& opset = opset_of(function);
  WireMessage message;
  message.add_integer(field::model::kSpecificationVersion, opset.specification_version);
  message.add_message(field::model::kDescription, description_message(function, info));
  message.add_message(field::model::kMlProgram, program_message(program, opset));
  if (message.bytes().size() > kMaxModelBytes) {
    refuse("program", fmt::format("{} bytes as a model, expected at most {}; large values belong "
                                  "into the weight file",
                                  message.bytes().size(), kMaxModelBytes));
  }
  return message.bytes();
}

bool has_weights(const Program& program) {
  bool found = false;
  for_each_value(program, [&](const Value& value) {
    found = found || std::holds_alternative<BlobReference>(value.elements);
  });
  return found;
}

}  // namespace clefkit::mil
