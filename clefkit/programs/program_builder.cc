#include "clefkit/programs/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "clefkit/base/error.h"
#include "clefkit/base/half.h"

namespace clefkit {
namespace {

using mil::DataType;
using mil::Value;

// What coremltools writes; compilers want it to be there (ane.md 3.1).
const std::vector<std::pair<std::string, std::string>> kBuildInfo{
    {"coremlc-component-MIL", "3510.2.1"},
    {"coremlc-version", "3505.4.1"},
    {"coremltools-component-milinternal", ""},
    {"coremltools-version", "9.0"}};
constexpr std::int64_t kRowsPerPalette = 16;
constexpr std::int64_t kPaletteEntries = 64;

}  // namespace

ProgramBuilder::ProgramBuilder(std::string weight_path, const Spellings& spellings)
    : weight_path_(std::move(weight_path)), spellings_(spellings) {
  program_.build_info = kBuildInfo;
  program_.functions.emplace_back();
}

const mil::ValueType& ProgramBuilder::type(const Name& name) const {
  const auto found = scope_.find(name);
  if (found == scope_.end()) throw_error(ErrorCode::kInternal, name, "no result of this name");
  return found->second.type;
}

ProgramBuilder::Name ProgramBuilder::unique(std::string_view hint) {
  Name name(hint);
  for (int i = 1; scope_.contains(name); ++i) name = fmt::format("{}_{}", hint, i);
  return name;
}

ProgramBuilder::Name ProgramBuilder::input(const std::string& name, const mil::Shape& shape) {
  if (scope_.contains(name))
    throw_error(ErrorCode::kInternal, name, "a second result of this name");
  const mil::ValueType input_type{DataType::kFloat16, shape};
  program_.functions[0].inputs.push_back({name, input_type});
  scope_[name] = {input_type, nullptr, false};
  return name;
}

void ProgramBuilder::output(const Name& result, const std::string& name) {
  mil::Function& function = program_.functions[0];
  const auto statement =
      std::ranges::find_if(function.statements, [&](const mil::Statement& candidate) {
        return candidate.outputs.size() == 1 && candidate.outputs[0].name == result;
      });
  if (statement == function.statements.end() || scope_.contains(name)) {
    throw_error(ErrorCode::kInternal, name, "cannot be the name of {}", result);
  }
  statement->outputs[0].name = name;
  statement->attributes[0].second = Value::string(name);
  for (mil::Statement& user : function.statements) {
    for (auto& [key, argument] : user.arguments) {
      if (auto* used = std::get_if<std::string>(&argument); used != nullptr && *used == result) {
        *used = name;
      }
      if (auto* tuple = std::get_if<std::vector<std::string>>(&argument)) {
        std::ranges::replace(*tuple, result, name);
      }
    }
  }
  scope_[name] = scope_.at(result);
  scope_.erase(result);
  function.outputs.push_back(name);
}

void ProgramBuilder::append(mil::Statement statement, bool is_weight) {
  statement.attributes.insert(statement.attributes.begin(),
                              {"name", Value::string(statement.outputs[0].name)});
  for (const mil::Variable& result : statement.outputs) {
    scope_[result.name] = {result.type, nullptr, is_weight};
  }
  program_.functions[0].statements.push_back(std::move(statement));
}

ProgramBuilder::Name ProgramBuilder::add(
    std::string_view op, std::vector<std::pair<std::string, mil::Argument>> arguments,
    std::string_view hint) {
  return add_all(op, std::move(arguments), hint).front();
}

std::vector<ProgramBuilder::Name> ProgramBuilder::add_all(
    std::string_view op, std::vector<std::pair<std::string, mil::Argument>> arguments,
    std::string_view hint) {
  const mil::Operation* const operation = mil::find_operation(op);
  if (operation == nullptr) throw_error(ErrorCode::kInternal, std::string(op), "no operation");
  mil::Statement statement;
  statement.op = op;
  statement.arguments = std::move(arguments);
  // Compilers have been seen to want them so.
  std::ranges::sort(statement.arguments, {}, &std::pair<std::string, mil::Argument>::first);
  std::vector<Name> names;
  try {
    for (const mil::ValueType& result : operation->infer(mil::Operands(statement, scope_))) {
      names.push_back(unique(hint));
      scope_[names.back()] = {};  // Taken.
      statement.outputs.push_back({names.back(), result});
    }
  } catch (const Error& error) {
    throw_error(ErrorCode::kInternal, std::string(hint), "{}: {}", op, error.what());
  }
  append(std::move(statement), op.starts_with("constexpr_"));
  return names;
}

ProgramBuilder::Name ProgramBuilder::binary(std::string_view op, const Name& x,
                                            const mil::Argument& y, std::string_view hint) {
  return add(op, {{"x", x}, {"y", y}}, hint);
}

ProgramBuilder::Name ProgramBuilder::unary(std::string_view op, const Name& x,
                                           std::string_view hint) {
  return add(op, {{"x", x}}, hint);
}

ProgramBuilder::Name ProgramBuilder::constant(const Value& value, std::string_view hint) {
  for (const auto& [known, name] : constants_) {
    if (known == value) return name;
  }
  mil::Statement statement;
  statement.op = "const";
  statement.outputs.push_back({unique(hint), value.type});
  statement.attributes.emplace_back("val", value);
  const Name name = statement.outputs[0].name;
  append(std::move(statement), true);
  constants_.emplace_back(value, name);
  scope_[name].constant = &constants_.back().first;
  return name;
}

ProgramBuilder::Name ProgramBuilder::scalar(double value, std::string_view hint) {
  return constant(Value::scalar(DataType::kFloat16, double{to_float(to_half(value))}), hint);
}

ProgramBuilder::Name ProgramBuilder::weight(const BlobWeight& weight, const mil::Shape& shape) {
  std::int64_t elements = 1;
  for (const std::size_t size : weight.shape) elements *= static_cast<std::int64_t>(size);
  if (elements != mil::element_count(shape)) {
    throw_error(ErrorCode::kInternal, weight.name, "{} elements in a shape of {}", elements,
                mil::element_count(shape));
  }
  const mil::ValueType dense{DataType::kFloat16, shape};
  Name& name = weights_[fmt::format("{} {}", weight.name, mil::to_string(dense))];
  if (!name.empty()) return name;
  std::string hint = weight.name.substr(0, weight.name.rfind(".weight"));
  hint.erase(0, hint.find("layers.") == hint.npos ? 0 : hint.find("layers."));
  std::ranges::replace(hint, '.', '_');
  const auto blob = [&](DataType element, const mil::Shape& its_shape, std::uint64_t offset) {
    return Value({element, its_shape}, mil::BlobReference{weight_path_, offset});
  };
  if (weight.kind == BlobWeight::Kind::kFp16) {
    name = constant(blob(DataType::kFloat16, shape, weight.offset), hint);
    return name;
  }
  // One table for 16 rows: [rows / 16, 1, …, 64, 1].
  mil::Shape tables(shape.size(), 1);
  tables[0] = shape[0] / kRowsPerPalette;
  tables.push_back(kPaletteEntries);
  tables.push_back(1);
  name = add("constexpr_lut_to_dense",
             {{"indices", blob(DataType::kUInt6, shape, weight.offset)},
              {"lut", blob(DataType::kFloat16, tables, weight.palette_offset)}},
             hint);
  return name;
}

ProgramBuilder::Name ProgramBuilder::linear(const Name& x, const BlobWeight& its_weight,
                                            std::string_view hint) {
  const auto rows = static_cast<std::int64_t>(its_weight.shape.at(0));
  const auto columns = static_cast<std::int64_t>(its_weight.shape.at(1));
  return conv(x, weight(its_weight, {rows, columns, 1, 1}), hint);
}

ProgramBuilder::Name ProgramBuilder::conv(const Name& x, const Name& its_weight,
                                          std::string_view hint, std::int64_t groups) {
  return add("conv",
             {{"x", x},
              {"weight", its_weight},
              {"strides", constant(Value::integers({1, 1}), "ones")},
              {"pad_type", constant(Value::string("valid"), "valid_padding")},
              {"pad", constant(Value::integers({0, 0, 0, 0}), "no_pad")},
              {"dilations", constant(Value::integers({1, 1}), "ones")},
              {"groups", constant(Value::scalar(DataType::kInt32, groups), "groups")}},
             hint);
}

ProgramBuilder::Name ProgramBuilder::silu(const Name& x, std::string_view hint) {
  if (spellings_.silu) return unary("silu", x, hint);
  const Name half = binary("mul", x, scalar(0.5, "half"), fmt::format("{}_half", hint));
  const Name tanh = unary("tanh", half, fmt::format("{}_tanh", hint));
  const Name gate = binary("add", tanh, scalar(1, "one"), fmt::format("{}_gate", hint));
  return binary("mul", half, gate, hint);
}

ProgramBuilder::Name ProgramBuilder::sigmoid(const Name& x, std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const Name negative = binary("mul", x, scalar(-1, "minus_one"), part("minus"));
  const Name bounded = binary("minimum", negative, scalar(10, "ten"), part("bounded"));
  const Name one = scalar(1, "one");
  const Name exponential = unary("exp", bounded, part("exp"));
  const Name sum = binary("add", exponential, one, part("sum"));
  return binary("real_div", one, sum, hint);
}

ProgramBuilder::Name ProgramBuilder::softplus(const Name& x, std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const Name minus_one = scalar(-1, "minus_one");
  const Name magnitude = unary("abs", x, part("abs"));
  const Name negative = binary("mul", magnitude, minus_one, part("minus_abs"));
  const Name t = unary("exp", negative, part("t"));
  // Each exact in FP16; from the highest power down.
  constexpr std::array kCoefficients{-0.023681640625, 0.10028076171875, -0.2086181640625,
                                     0.324462890625,  -0.499267578125,  1.0};
  Name sum = scalar(kCoefficients[0], part("c5"));
  for (std::size_t i = 1; i < kCoefficients.size(); ++i) {
    const Name product = binary("mul", t, sum, part("product"));
    sum =
        binary("add", product,
               scalar(kCoefficients[i], fmt::format("{}_c{}", hint, kCoefficients.size() - 1 - i)),
               part("polynomial"));
  }
  const Name logarithm = binary("mul", t, sum, part("log"));
  return binary("add", unary("relu", x, part("relu")), logarithm, hint);
}

ProgramBuilder::Name ProgramBuilder::gelu_tanh(const Name& x, std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  constexpr double kSlope = 1.5957691216057308;  // 2 √(2/π)
  // From -4 on exp(-2u) is within FP16 and the tables of an M1; from 8 on it is nothing, and no
  // power of x overflows.
  const Name low = binary("maximum", x, scalar(-4, "minus_four"), part("low"));
  const Name bounded = binary("minimum", low, scalar(8, "eight"), part("bounded"));
  const Name square = binary("mul", bounded, bounded, part("square"));
  const Name cubic = binary("mul", square, scalar(-kSlope * 0.044715, "gelu_cubic"), part("cubic"));
  const Name slope = binary("add", cubic, scalar(-kSlope, "gelu_slope"), part("slope"));
  const Name exponent = binary("mul", bounded, slope, part("exponent"));
  const Name exponential = unary("exp", exponent, part("exp"));
  const Name sum = binary("add", exponential, scalar(1, "one"), part("sum"));
  return binary("real_div", low, sum, hint);
}

ProgramBuilder::Name ProgramBuilder::inverse_root(const Name& x, std::string_view hint) {
  if (!spellings_.root_by_division) return binary("pow", x, scalar(-0.5, "minus_half"), hint);
  const Name one = scalar(1, "one");
  const Name root = unary("sqrt", x, fmt::format("{}_root", hint));
  return binary("real_div", one, root, hint);
}

ProgramBuilder::Name ProgramBuilder::softmax(const Name& x, std::string_view hint) {
  const std::int64_t axis = static_cast<std::int64_t>(type(x).shape.size()) - 1;
  if (!spellings_.softmax_by_exp) {
    return add("softmax",
               {{"x", x}, {"axis", constant(Value::scalar(DataType::kInt32, axis), "axis")}}, hint);
  }
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const Name largest = reduce("reduce_max", x, axis, part("max"));
  const Name difference = binary("sub", x, largest, part("difference"));
  const Name exponential = unary("exp", difference, part("exp"));
  // At most the number of places, 16,384.
  const Name sum = reduce("reduce_sum", exponential, axis, part("sum"));
  return binary("real_div", exponential, sum, hint);
}

ProgramBuilder::Name ProgramBuilder::reduce(std::string_view op, const Name& x, std::int64_t axis,
                                            std::string_view hint) {
  const Name axes = constant(Value::integers({axis}), "axes");
  return add(op, {{"x", x}, {"axes", axes}, {"keep_dims", constant(Value::boolean(true), "yes")}},
             hint);
}

ProgramBuilder::Name ProgramBuilder::channel_maximum(const Name& x, std::string_view hint) {
  if (!spellings_.maximum_by_halves) return reduce("reduce_max", x, 1, hint);
  Name rest = x;
  for (std::int64_t channels = type(x).shape.at(1); channels > 1;) {
    const std::int64_t half = channels / 2;
    std::vector<std::int64_t> sizes{half, half};
    if (channels % 2 != 0) sizes.push_back(1);
    const std::vector<Name> parts = split(rest, 1, sizes, fmt::format("{}_halves", hint));
    rest = binary("maximum", parts[0], parts[1], hint);
    if (parts.size() > 2) rest = binary("maximum", rest, parts[2], hint);  // Broadcast.
    channels = half;
  }
  return rest;
}

ProgramBuilder::Name ProgramBuilder::channel_mean(const Name& x, double largest,
                                                  std::string_view hint) {
  if (spellings_.reduce_mean) return reduce("reduce_mean", x, 1, hint);
  const auto channels = static_cast<double>(type(x).shape.at(1));
  double share = 1;
  // A sixteenth to spare for rounding.
  while (largest * channels * share * 17 / 16 >= 0x1p15) share /= 2;
  const Name sum = channel_sum(x, share, fmt::format("{}_sum", hint));
  if (channels * share == 1) return sum;
  const Name count = scalar(1 / (channels * share), fmt::format("{}_count", hint));
  return binary("mul", sum, count, hint);
}

ProgramBuilder::Name ProgramBuilder::channel_sum(const Name& x, double its_weight,
                                                 std::string_view hint) {
  const std::int64_t channels = type(x).shape.at(1);
  const Value weights({DataType::kFloat16, {1, channels, 1, 1}},
                      std::vector<double>(static_cast<std::size_t>(channels),
                                          double{to_float(to_half(its_weight))}));
  return conv(x, constant(weights, "channel_weights"), hint);
}

ProgramBuilder::Name ProgramBuilder::reshape(const Name& x, const mil::Shape& shape,
                                             std::string_view hint) {
  return add("reshape", {{"x", x}, {"shape", constant(Value::integers(shape), "shape")}}, hint);
}

ProgramBuilder::Name ProgramBuilder::transpose(const Name& x, const std::vector<std::int64_t>& perm,
                                               std::string_view hint) {
  return add("transpose", {{"x", x}, {"perm", constant(Value::integers(perm), "perm")}}, hint);
}

ProgramBuilder::Name ProgramBuilder::matmul(const Name& x, const Name& y, std::string_view hint) {
  return matmul(x, y, false, false, hint);
}
ProgramBuilder::Name ProgramBuilder::matmul_transposed_y(const Name& x, const Name& y,
                                                         std::string_view hint) {
  return matmul(x, y, false, true, hint);
}
ProgramBuilder::Name ProgramBuilder::matmul_transposed_x(const Name& x, const Name& y,
                                                         std::string_view hint) {
  return matmul(x, y, true, false, hint);
}

ProgramBuilder::Name ProgramBuilder::matmul(const Name& x, const Name& y, bool transpose_x,
                                            bool transpose_y, std::string_view hint) {
  const auto flag = [&](bool value) {
    return constant(Value::boolean(value), value ? "yes" : "no");
  };
  return add(
      "matmul",
      {{"x", x}, {"y", y}, {"transpose_x", flag(transpose_x)}, {"transpose_y", flag(transpose_y)}},
      hint);
}

ProgramBuilder::Name ProgramBuilder::concat(const std::vector<Name>& parts, std::int64_t axis,
                                            std::string_view hint) {
  if (spellings_.concat_by_sum) return sum_of_padded(parts, static_cast<std::size_t>(axis), hint);
  return add("concat",
             {{"values", parts},
              {"axis", constant(Value::scalar(DataType::kInt32, axis), "axis")},
              {"interleave", constant(Value::boolean(false), "no")}},
             hint);
}

ProgramBuilder::Name ProgramBuilder::sum_of_padded(const std::vector<Name>& parts, std::size_t axis,
                                                   std::string_view hint) {
  std::int64_t total = 0, before = 0;
  for (const Name& part : parts) total += type(part).shape.at(axis);
  Name sum;
  for (const Name& part : parts) {
    const mil::Shape& shape = type(part).shape;
    const std::int64_t size = shape.at(axis);
    std::vector<std::int64_t> pad(2 * shape.size(), 0);
    pad[2 * axis] = before;
    pad[2 * axis + 1] = total - before - size;
    before += size;
    const Name constant_pad = constant(Value::integers(pad), "pad");
    const Name mode = constant(Value::string("constant"), "mode");
    const Name padded = add(
        "pad",
        {{"x", part}, {"pad", constant_pad}, {"mode", mode}, {"constant_val", scalar(0, "zero")}},
        fmt::format("{}_padded", hint));
    sum = sum.empty() ? padded : binary("add", sum, padded, hint);
  }
  return sum;
}

ProgramBuilder::Name ProgramBuilder::repeat(const Name& x, std::int64_t axis, std::int64_t count,
                                            std::string_view hint) {
  mil::Shape shape(type(x).shape.size(), 1);
  shape.at(static_cast<std::size_t>(axis)) = count;
  if (!spellings_.tile_by_product) {
    return add("tile", {{"x", x}, {"reps", constant(Value::integers(shape), "reps")}}, hint);
  }
  const Value ones({DataType::kFloat16, shape},
                   std::vector<double>(static_cast<std::size_t>(count), 1.0));
  return binary("mul", x, constant(ones, "ones"), hint);
}

std::vector<ProgramBuilder::Name> ProgramBuilder::split(const Name& x, std::int64_t axis,
                                                        std::int64_t parts, std::string_view hint) {
  return add_all("split",
                 {{"x", x},
                  {"axis", constant(Value::scalar(DataType::kInt32, axis), "axis")},
                  {"num_splits", constant(Value::scalar(DataType::kInt32, parts), "parts")}},
                 hint);
}

std::vector<ProgramBuilder::Name> ProgramBuilder::split(const Name& x, std::int64_t axis,
                                                        const std::vector<std::int64_t>& sizes,
                                                        std::string_view hint) {
  return add_all("split",
                 {{"x", x},
                  {"axis", constant(Value::scalar(DataType::kInt32, axis), "axis")},
                  {"split_sizes", constant(Value::integers(sizes), "sizes")}},
                 hint);
}

mil::Program ProgramBuilder::finish() && { return std::move(program_); }

}  // namespace clefkit
