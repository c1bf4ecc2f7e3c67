#include "clefkit/mil/operations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clefkit/base/error.h"

namespace clefkit::mil {
namespace {

using Types = std::vector<ValueType>;

template <typename... Args>
[[noreturn]] void refuse(std::string_view argument, fmt::format_string<Args...> format,
                         Args&&... args) {
  throw_error(ErrorCode::kInvalidArgument, std::string(argument), format,
              std::forward<Args>(args)...);
}

void require_float(const ValueType& type, std::string_view name) {
  if (!is_float(type.data_type)) refuse(name, "{}, expected fp16 or fp32", to_string(type));
}

void require_same_type(const ValueType& x, const ValueType& y, std::string_view name) {
  if (x.data_type == y.data_type) return;
  refuse(name, "{}, expected elements of type {}", to_string(y), to_string(x.data_type));
}

void require_rank(const ValueType& type, std::size_t rank, std::string_view name) {
  if (type.shape.size() != rank) refuse(name, "{}, expected rank {}", to_string(type), rank);
}

void require_size(const std::vector<std::int64_t>& values, std::size_t size,
                  std::string_view name) {
  if (values.size() != size) {
    refuse(name, "[{}], expected {} values", fmt::join(values, ", "), size);
  }
}

// An axis of `type`, counted from the front.
std::size_t axis_of(std::int64_t axis, const ValueType& type, std::string_view name) {
  const auto rank = static_cast<std::int64_t>(type.shape.size());
  if (axis < -rank || axis >= rank) {
    refuse(name, "{}, expected an axis of {}", axis, to_string(type));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

std::vector<bool> marked_axes(const Operands& operands, const ValueType& x) {
  std::vector<bool> marks(x.shape.size(), false);
  for (const std::int64_t axis : operands.integers("axes")) {
    const std::size_t at = axis_of(axis, x, "axes");
    if (marks[at]) refuse("axes", "axis {} twice", at);
    marks[at] = true;
  }
  return marks;
}

// Dimensions that are equal, or 1 on one side. The Neural Engine wants equal ranks; scalars aside.
Shape broadcast(const Shape& x, const Shape& y, std::string_view name) {
  if (x.empty()) return y;
  if (y.empty()) return x;
  Shape out = x;
  bool is_possible = x.size() == y.size();
  for (std::size_t i = 0; is_possible && i < x.size(); ++i) {
    is_possible = x[i] == y[i] || x[i] == 1 || y[i] == 1;
    out[i] = x[i] == 1 ? y[i] : x[i];
  }
  if (!is_possible) {
    refuse(name, "[{}], expected a shape to broadcast with [{}]", fmt::join(y, ", "),
           fmt::join(x, ", "));
  }
  return out;
}

Types infer_unary(const Operands& operands) {
  const ValueType x = operands.type("x");
  require_float(x, "x");
  return {x};
}

Types infer_with_epsilon(const Operands& operands) {
  if (operands.has("epsilon")) operands.number("epsilon");
  return infer_unary(operands);
}

Types infer_clip(const Operands& operands) {
  operands.number("alpha");
  operands.number("beta");
  return infer_unary(operands);
}

Types infer_binary(const Operands& operands) {
  const ValueType x = operands.type("x"), y = operands.type("y");
  require_float(x, "x");
  require_same_type(x, y, "y");
  return {{x.data_type, broadcast(x.shape, y.shape, "y")}};
}

Types infer_comparison(const Operands& operands) {
  return {{DataType::kBool, infer_binary(operands)[0].shape}};
}

Types infer_select(const Operands& operands) {
  const ValueType cond = operands.type("cond"), a = operands.type("a"), b = operands.type("b");
  if (cond.data_type != DataType::kBool) refuse("cond", "{}, expected bool", to_string(cond));
  require_same_type(a, b, "b");
  return {{a.data_type, broadcast(broadcast(cond.shape, a.shape, "a"), b.shape, "b")}};
}

Types infer_reduce(const Operands& operands) {
  const ValueType x = operands.type("x");
  require_float(x, "x");
  const bool keep_dims = operands.boolean("keep_dims");
  const std::vector<bool> is_reduced = marked_axes(operands, x);
  ValueType out{x.data_type};
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (!is_reduced[i]) out.shape.push_back(x.shape[i]);
    if (is_reduced[i] && keep_dims) out.shape.push_back(1);
  }
  return {out};
}

Types infer_softmax(const Operands& operands) {
  const Types types = infer_unary(operands);
  axis_of(operands.integer("axis"), types[0], "axis");
  return types;
}

Types infer_layer_norm(const Operands& operands) {
  const Types types = infer_with_epsilon(operands);
  const std::vector<bool> is_normed = marked_axes(operands, types[0]);
  Shape normed;
  for (std::size_t i = 0; i < is_normed.size(); ++i) {
    if (is_normed[i]) normed.push_back(types[0].shape[i]);
  }
  for (const char* name : {"gamma", "beta"}) {
    if (!operands.has(name)) continue;
    const ValueType type = operands.type(name);
    if (type != ValueType{types[0].data_type, normed}) {
      refuse(name, "{}, expected {}", to_string(type),
             to_string(ValueType{types[0].data_type, normed}));
    }
  }
  return types;
}

Types infer_conv(const Operands& operands) {
  const ValueType x = operands.type("x"), weight = operands.type("weight");
  require_float(x, "x");
  require_same_type(x, weight, "weight");
  require_rank(x, 4, "x");
  require_rank(weight, 4, "weight");
  if (!operands.is_weight("weight")) refuse("weight", "a result, expected a constant");
  const auto strides = operands.integers("strides"), dilations = operands.integers("dilations");
  auto pad = operands.integers("pad");
  const std::int64_t groups = operands.integer("groups");
  require_size(strides, 2, "strides");
  require_size(dilations, 2, "dilations");
  require_size(pad, 4, "pad");
  const std::string pad_type = operands.text("pad_type");
  if (pad_type == "valid") {
    std::ranges::fill(pad, 0);
  } else if (pad_type != "custom") {
    refuse("pad_type", "\"{}\", expected \"valid\" or \"custom\"", pad_type);
  }
  if (groups < 1 || weight.shape[0] % groups != 0 || x.shape[1] % groups != 0 ||
      weight.shape[1] != x.shape[1] / groups) {
    refuse("weight", "{} in {} groups, expected [outputs, {} / groups, height, width]",
           to_string(weight), groups, x.shape[1]);
  }
  ValueType out{x.data_type, {x.shape[0], weight.shape[0], 0, 0}};
  for (std::size_t i = 0; i < 2; ++i) {
    if (strides[i] < 1) refuse("strides", "{}, expected 1 or more", strides[i]);
    if (dilations[i] < 1) refuse("dilations", "{}, expected 1 or more", dilations[i]);
    if (pad[2 * i] < 0 || pad[2 * i + 1] < 0) refuse("pad", "a negative number");
    const std::int64_t kernel = dilations[i] * (weight.shape[2 + i] - 1) + 1;
    const std::int64_t room = x.shape[2 + i] + pad[2 * i] + pad[2 * i + 1] - kernel;
    if (room < 0) refuse("weight", "{} is larger than {}", to_string(weight), to_string(x));
    out.shape[2 + i] = room / strides[i] + 1;
  }
  if (operands.has("bias")) {
    const ValueType bias = operands.type("bias");
    if (bias != ValueType{x.data_type, {weight.shape[0]}}) {
      refuse("bias", "{}, expected [{}]", to_string(bias), weight.shape[0]);
    }
  }
  return {out};
}

Types infer_matmul(const Operands& operands) {
  const ValueType x = operands.type("x"), y = operands.type("y");
  require_float(x, "x");
  require_same_type(x, y, "y");
  if (x.shape.size() < 2) refuse("x", "{}, expected rank 2 or more", to_string(x));
  require_rank(y, x.shape.size(), "y");
  const std::size_t rank = x.shape.size();
  const auto flag = [&](const char* name) { return operands.has(name) && operands.boolean(name); };
  const bool turns_x = flag("transpose_x"), turns_y = flag("transpose_y");
  const std::int64_t inner_x = x.shape[rank - (turns_x ? 2 : 1)];
  const std::int64_t inner_y = y.shape[rank - (turns_y ? 1 : 2)];
  if (inner_x != inner_y) {
    refuse("y", "{}, expected {} along the summed axis of {}", to_string(y), inner_x, to_string(x));
  }
  Shape shape =
      broadcast({x.shape.begin(), x.shape.end() - 2}, {y.shape.begin(), y.shape.end() - 2}, "y");
  shape.push_back(x.shape[rank - (turns_x ? 1 : 2)]);
  shape.push_back(y.shape[rank - (turns_y ? 2 : 1)]);
  return {{x.data_type, shape}};
}

Types infer_transpose(const Operands& operands) {
  const ValueType x = operands.type("x");
  const auto perm = operands.integers("perm");
  require_size(perm, x.shape.size(), "perm");
  ValueType out{x.data_type};
  std::vector<bool> is_taken(perm.size(), false);
  for (const std::int64_t axis : perm) {
    const std::size_t at = axis_of(axis, x, "perm");
    if (is_taken[at]) refuse("perm", "axis {} twice", at);
    is_taken[at] = true;
    out.shape.push_back(x.shape[at]);
  }
  return {out};
}

Types infer_reshape(const Operands& operands) {
  const ValueType x = operands.type("x");
  if (operands.is_weight("x")) refuse("x", "a constant, expected a result");
  const Shape shape = operands.integers("shape");
  for (const std::int64_t size : shape) {
    if (size < 1) refuse("shape", "{}, expected dimensions from 1 on", size);
  }
  if (element_count(shape) != element_count(x.shape)) {
    refuse("shape", "[{}], expected as many elements as {}", fmt::join(shape, ", "), to_string(x));
  }
  return {{x.data_type, shape}};
}

Types infer_expand_dims(const Operands& operands) {
  const ValueType x = operands.type("x");
  const auto axes = operands.integers("axes");
  ValueType out{x.data_type, Shape(x.shape.size() + axes.size(), 0)};
  for (const std::int64_t axis : axes) {
    const std::size_t at = axis_of(axis, out, "axes");
    if (out.shape[at] != 0) refuse("axes", "axis {} twice", at);
    out.shape[at] = 1;
  }
  auto next = x.shape.begin();
  for (std::int64_t& size : out.shape) {
    if (size == 0) size = *next++;
  }
  return {out};
}

Types infer_squeeze(const Operands& operands) {
  const ValueType x = operands.type("x");
  const std::vector<bool> is_gone = marked_axes(operands, x);
  ValueType out{x.data_type};
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (!is_gone[i]) out.shape.push_back(x.shape[i]);
    if (is_gone[i] && x.shape[i] != 1) refuse("axes", "axis {} has {} elements", i, x.shape[i]);
  }
  return {out};
}

Types infer_slice_by_size(const Operands& operands) {
  const ValueType x = operands.type("x");
  const auto begin = operands.integers("begin"), size = operands.integers("size");
  require_size(begin, x.shape.size(), "begin");
  require_size(size, x.shape.size(), "size");
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (begin[i] < 0 || size[i] < 1 || begin[i] > x.shape[i] - size[i]) {
      refuse("begin", "[{}] with the size [{}], expected a part of {}", fmt::join(begin, ", "),
             fmt::join(size, ", "), to_string(x));
    }
  }
  return {{x.data_type, size}};
}

Types infer_split(const Operands& operands) {
  const ValueType x = operands.type("x");
  const std::size_t axis = axis_of(operands.integer("axis"), x, "axis");
  std::vector<std::int64_t> sizes;
  if (operands.has("split_sizes")) {
    if (operands.has("num_splits")) refuse("num_splits", "given beside split_sizes");
    sizes = operands.integers("split_sizes");
  } else if (operands.has("num_splits")) {
    const std::int64_t parts = operands.integer("num_splits");
    if (parts < 1 || x.shape[axis] % parts != 0) {
      refuse("num_splits", "{}, expected a divisor of {}", parts, x.shape[axis]);
    }
    sizes.assign(static_cast<std::size_t>(parts), x.shape[axis] / parts);
  } else {
    refuse("split_sizes", "missing, expected it or num_splits");
  }
  std::int64_t sum = 0;
  Types types;
  for (const std::int64_t size : sizes) {
    if (size < 1) refuse("split_sizes", "{}, expected 1 or more", size);
    sum += size;
    types.push_back(x);
    types.back().shape[axis] = size;
  }
  if (sum != x.shape[axis]) refuse("split_sizes", "{} in all, expected {}", sum, x.shape[axis]);
  return types;
}

Types infer_concat(const Operands& operands) {
  const Types values = operands.types("values");
  const std::size_t axis = axis_of(operands.integer("axis"), values[0], "axis");
  if (operands.has("interleave") && operands.boolean("interleave")) {
    refuse("interleave", "true, expected false");
  }
  ValueType out = values[0];
  for (const ValueType& value : std::span(values).subspan(1)) {
    ValueType expected = values[0];
    require_rank(value, out.shape.size(), "values");
    expected.shape[axis] = value.shape[axis];
    if (value != expected) {
      refuse("values", "{} beside {}, expected equal shapes but for axis {}", to_string(value),
             to_string(values[0]), axis);
    }
    out.shape[axis] += value.shape[axis];
  }
  return {out};
}

Types infer_tile(const Operands& operands) {
  ValueType out = operands.type("x");
  const auto reps = operands.integers("reps");
  require_size(reps, out.shape.size(), "reps");
  for (std::size_t i = 0; i < reps.size(); ++i) {
    if (reps[i] < 1) refuse("reps", "{}, expected 1 or more", reps[i]);
    out.shape[i] *= reps[i];
  }
  return {out};
}

Types infer_pad(const Operands& operands) {
  ValueType out = operands.type("x");
  const auto pad = operands.integers("pad");
  if (pad.size() % 2 != 0 || pad.size() > 2 * out.shape.size()) {
    refuse("pad", "{} values, expected a pair for each of the last axes", pad.size());
  }
  if (operands.text("mode") != "constant") {
    refuse("mode", "\"{}\", expected \"constant\"", operands.text("mode"));
  }
  operands.number("constant_val");
  const std::size_t first = out.shape.size() - pad.size() / 2;
  for (std::size_t i = 0; i < pad.size(); ++i) {
    if (pad[i] < 0) refuse("pad", "{}, expected 0 or more", pad[i]);
    out.shape[first + i / 2] += pad[i];
  }
  return {out};
}

Types infer_cast(const Operands& operands) {
  ValueType out = operands.type("x");
  const std::string name = operands.text("dtype");
  const auto type = data_type(name);
  if (!type || !(is_float(*type) || *type == DataType::kBool)) {
    refuse("dtype", "\"{}\", expected \"fp16\", \"fp32\" or \"bool\"", name);
  }
  out.data_type = *type;
  return {out};
}

// ane.md 3.3, as of iOS 18.
Types infer_lut_to_dense(const Operands& operands) {
  const ValueType indices = operands.type("indices"), lut = operands.type("lut");
  for (const char* name : {"indices", "lut"}) {
    if (!operands.is_weight(name)) refuse(name, "a result, expected a constant");
  }
  const auto blob = blob_type(indices.data_type);
  if (!blob || !to_string(indices.data_type).starts_with("uint") || bits_per_element(*blob) > 8) {
    refuse("indices", "{}, expected unsigned integers of at most 8 bits", to_string(indices));
  }
  const std::size_t rank = indices.shape.size();
  if (operands.has("vector_axis")) refuse("vector_axis", "given, expected tables of scalars");
  require_rank(lut, rank + 2, "lut");
  const std::int64_t entries = std::int64_t{1} << bits_per_element(*blob);
  if (lut.shape[rank] != entries || lut.shape[rank + 1] != 1) {
    refuse("lut", "{}, expected [groups…, {}, 1]", to_string(lut), entries);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (lut.shape[i] < 1 || indices.shape[i] % lut.shape[i] != 0) {
      refuse("lut", "{} groups along axis {}, expected a divisor of {}", lut.shape[i], i,
             indices.shape[i]);
    }
  }
  return {{lut.data_type, indices.shape}};
}

const std::vector<Operation>& table() {
  static const std::vector<Operation> kTable = [] {
    std::vector<Operation> rows{
        {"conv",
         {"x", "weight", "strides", "pad_type", "pad", "dilations", "groups"},
         {"bias"},
         infer_conv},
        {"matmul", {"x", "y"}, {"transpose_x", "transpose_y"}, infer_matmul},
        {"rsqrt", {"x", "epsilon"}, {}, infer_with_epsilon},
        {"log", {"x", "epsilon"}, {}, infer_with_epsilon},
        {"inverse", {"x", "epsilon"}, {}, infer_with_epsilon},
        {"l2_norm", {"x", "epsilon"}, {}, infer_with_epsilon},
        {"clip", {"x", "alpha", "beta"}, {}, infer_clip},
        {"softmax", {"x", "axis"}, {}, infer_softmax},
        {"layer_norm", {"x", "axes"}, {"gamma", "beta", "epsilon"}, infer_layer_norm},
        {"transpose", {"x", "perm"}, {}, infer_transpose},
        {"reshape", {"x", "shape"}, {}, infer_reshape},
        {"expand_dims", {"x", "axes"}, {}, infer_expand_dims},
        {"squeeze", {"x", "axes"}, {}, infer_squeeze},
        {"slice_by_size", {"x", "begin", "size"}, {}, infer_slice_by_size},
        {"split", {"x", "axis"}, {"num_splits", "split_sizes"}, infer_split},
        {"concat", {"values", "axis"}, {"interleave"}, infer_concat},
        {"tile", {"x", "reps"}, {}, infer_tile},
        {"pad", {"x", "pad", "mode", "constant_val"}, {}, infer_pad},
        {"select", {"cond", "a", "b"}, {}, infer_select},
        {"cast", {"x", "dtype"}, {}, infer_cast},
        {"constexpr_lut_to_dense", {"indices", "lut"}, {"vector_axis"}, infer_lut_to_dense},
    };
    for (const char* name : {"add", "sub", "mul", "real_div", "maximum", "minimum", "pow"}) {
      rows.push_back({name, {"x", "y"}, {}, infer_binary});
    }
    for (const char* name : {"greater", "greater_equal", "less", "less_equal", "equal"}) {
      rows.push_back({name, {"x", "y"}, {}, infer_comparison});
    }
    for (const char* name :
         {"sqrt", "exp", "exp2", "tanh", "sigmoid", "silu", "softplus", "relu", "abs", "square"}) {
      rows.push_back({name, {"x"}, {}, infer_unary});
    }
    for (const char* name :
         {"reduce_mean", "reduce_sum", "reduce_max", "reduce_min", "reduce_sum_square"}) {
      rows.push_back({name, {"x", "axes", "keep_dims"}, {}, infer_reduce});
    }
    return rows;
  }();
  return kTable;
}

}  // namespace

std::span<const Operation> operations() { return table(); }

const Operation* find_operation(std::string_view name) {
  const auto row = std::ranges::find(table(), name, &Operation::name);
  return row == table().end() ? nullptr : &*row;
}

const Argument& Operands::argument(std::string_view name) const {
  const Argument* const found = statement_.argument(name);
  if (found == nullptr) refuse(name, "missing");
  return *found;
}

Definition Operands::definition(std::string_view name) const {
  const Argument& given = argument(name);
  if (const auto* value = std::get_if<Value>(&given)) return {value->type, value, true};
  const auto* const variable = std::get_if<std::string>(&given);
  if (variable == nullptr) refuse(name, "a tuple, expected one value");
  const auto found = scope_.find(*variable);
  if (found == scope_.end()) refuse(name, "nothing before it is called {}", *variable);
  return found->second;
}

ValueType Operands::type(std::string_view name) const { return definition(name).type; }

bool Operands::is_weight(std::string_view name) const { return definition(name).is_weight; }

std::vector<ValueType> Operands::types(std::string_view name) const {
  const auto* const names = std::get_if<std::vector<std::string>>(&argument(name));
  if (names == nullptr) refuse(name, "one value, expected a tuple");
  std::vector<ValueType> types;
  for (const std::string& variable : *names) {
    const auto found = scope_.find(variable);
    if (found == scope_.end()) refuse(name, "nothing before it is called {}", variable);
    types.push_back(found->second.type);
  }
  return types;
}

const Value& Operands::constant(std::string_view name) const {
  const Value* const value = definition(name).constant;
  if (value == nullptr || std::holds_alternative<BlobReference>(value->elements)) {
    refuse(name, "a result, expected a constant");
  }
  return *value;
}

const Value& Operands::constant_of(std::string_view name, DataType type) const {
  const Value& value = constant(name);
  if (value.type != ValueType{type}) {
    refuse(name, "{}, expected {}", to_string(value.type), to_string(type));
  }
  return value;
}

std::vector<std::int64_t> Operands::integers(std::string_view name) const {
  const Value& value = constant(name);
  if (value.type.data_type != DataType::kInt32 || value.type.shape.size() != 1) {
    refuse(name, "{}, expected a vector of int32", to_string(value.type));
  }
  return std::get<std::vector<std::int64_t>>(value.elements);
}

std::int64_t Operands::integer(std::string_view name) const {
  return std::get<std::vector<std::int64_t>>(constant_of(name, DataType::kInt32).elements)[0];
}

double Operands::number(std::string_view name) const {
  const Value& value = constant(name);
  if (!is_float(value.type.data_type) || !value.type.shape.empty()) {
    refuse(name, "{}, expected fp16 or fp32", to_string(value.type));
  }
  return std::get<std::vector<double>>(value.elements)[0];
}

bool Operands::boolean(std::string_view name) const {
  return std::get<std::vector<std::int64_t>>(constant_of(name, DataType::kBool).elements)[0] != 0;
}

std::string Operands::text(std::string_view name) const {
  return std::get<std::vector<std::string>>(constant_of(name, DataType::kString).elements)[0];
}

}  // namespace clefkit::mil
