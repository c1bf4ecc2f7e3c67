#include "clefkit/mil/simulator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <numeric>

#include "clefkit/base/error.h"
#include "clefkit/base/half.h"
#include "clefkit/mil/bit_packing.h"
#include "clefkit/mil/operations.h"

namespace clefkit::mil {
namespace {

using Index = std::size_t;

// Activation units are tables of 33 points with straight lines between them (ane.md 5.3); outside
// of a table its ends hold.
constexpr int kKnots = 33;
constexpr double kLargestExponent = 11.094;
constexpr double kLargestSoftplus = 10.4;
constexpr double kLogOfZero = -45440;

Index count_of(const Shape& shape) { return static_cast<Index>(element_count(shape)); }
Index at(const Shape& shape, Index axis) { return static_cast<Index>(shape[axis]); }

double from_table(double (*function)(double), double low, double high, double x) {
  const double step = (high - low) / (kKnots - 1);
  const double place = (std::clamp(x, low, high) - low) / step;
  const double knot = std::min(std::floor(place), kKnots - 2.0);
  const double left = low + knot * step;
  const double share = place - knot;
  return function(left) * (1 - share) + function(left + step) * share;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double activation(const std::string& op, double x, NumericProfile profile) {
  const bool has_tables = profile == NumericProfile::kM1;
  if (op == "sigmoid") return has_tables ? from_table(sigmoid, -9.94, 8.32, x) : sigmoid(x);
  if (op == "silu") return x * activation("sigmoid", x, profile);
  if (op == "tanh") {
    // Odd, so that tanh(0) is 0.
    constexpr double kEnd = 4.25;
    if (!has_tables) return std::tanh(x);
    return std::copysign(from_table([](double t) { return std::tanh(t); }, 0, kEnd, std::abs(x)),
                         x);
  }
  if (op == "exp") {
    if (has_tables && x >= kLargestExponent) return std::numeric_limits<double>::infinity();
    return std::exp(x);
  }
  if (op == "exp2") return std::exp2(x);
  if (op == "softplus") {
    if (has_tables && x > kLargestSoftplus) return 0;
    return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0);
  }
  if (op == "relu") return std::max(x, 0.0);
  if (op == "abs") return std::abs(x);
  if (op == "square") return x * x;
  return std::sqrt(x);
}

double combined(const std::string& op, double x, double y) {
  if (op == "add") return x + y;
  if (op == "sub") return x - y;
  if (op == "mul") return x * y;
  if (op == "real_div") return x / y;
  if (op == "maximum") return std::max(x, y);
  if (op == "minimum") return std::min(x, y);
  if (op == "pow") return std::pow(x, y);
  if (op == "greater") return x > y;
  if (op == "greater_equal") return x >= y;
  if (op == "less") return x < y;
  if (op == "less_equal") return x <= y;
  return x == y;
}

// Steps of a tensor along its own axes.
std::vector<Index> row_major_steps(const Shape& shape) {
  std::vector<Index> steps(shape.size(), 1);
  for (Index i = shape.size(); i-- > 1;) steps[i - 1] = steps[i] * at(shape, i);
  return steps;
}

Index from_front(std::int64_t axis, std::size_t rank) {
  return static_cast<Index>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

// Steps of a tensor along the axes of `shape`, with which it broadcasts; 0 where it has one
// element.
std::vector<Index> steps_within(const Shape& tensor, const Shape& shape) {
  std::vector<Index> steps(shape.size(), 0);
  Index step = 1;
  for (Index i = tensor.size(); i-- > 0;) {
    if (tensor[i] != 1) steps[i] = step;
    step *= at(tensor, i);
  }
  return steps;
}

// Calls function(output, place of each tensor) for every element of `shape` in order.
template <std::size_t kTensors, typename Function>
void for_each(const Shape& shape, const std::array<std::vector<Index>, kTensors>& steps,
              Function&& function) {
  std::vector<Index> position(shape.size(), 0);
  std::array<Index, kTensors> places{};
  const Index count = count_of(shape);
  for (Index i = 0; i < count; ++i) {
    function(i, places);
    for (Index axis = shape.size(); axis-- > 0;) {
      for (Index t = 0; t < kTensors; ++t) places[t] += steps[t][axis];
      if (++position[axis] < at(shape, axis)) break;
      for (Index t = 0; t < kTensors; ++t) places[t] -= steps[t][axis] * at(shape, axis);
      position[axis] = 0;
    }
  }
}

std::vector<float> floats_of(const BlobRecord& record) {
  std::vector<float> values(record.element_count);
  if (record.type == BlobDataType::kFloat32) {
    std::memcpy(values.data(), record.data.data(), record.data.size());
    return values;
  }
  for (Index i = 0; i < values.size(); ++i) {
    Half half;
    std::memcpy(&half.bits, record.data.data() + 2 * i, sizeof(half.bits));
    values[i] = to_float(half);
  }
  return values;
}

// One function's pass over one set of inputs.
class Pass {
 public:
  Pass(NumericProfile profile, const WeightFiles& weights, const Tensors& constants,
       const Simulator::Watcher& watcher)
      : profile_(profile), weights_(weights), constants_(constants), watcher_(watcher) {}

  void define(const std::string& name, const ValueType& type, Tensor tensor) {
    scope_[name] = {type, nullptr, false};
    results_[name] = std::move(tensor);
  }
  void define_constant(const Statement& statement) {
    const Variable& output = statement.outputs[0];
    scope_[output.name] = {output.type, statement.attribute("val"), true};
  }

  const Tensor& tensor(const std::string& name) const {
    const auto found = results_.find(name);
    return found != results_.end() ? found->second : constants_.at(name);
  }

  void run(const Statement& statement) {
    statement_ = &statement;
    const Operands operands(statement, scope_);
    operands_ = &operands;
    inline_.clear();
    std::vector<Tensor> results = evaluate();
    for (Index i = 0; i < results.size(); ++i) {
      const Variable& output = statement.outputs[i];
      results[i].shape = output.type.shape;
      check(output.name, results[i]);
      if (watcher_) watcher_(statement, results[i]);
      define(output.name, output.type, std::move(results[i]));
    }
  }

  // A value that stands in the text or in a weight file.
  Tensor load(const Value& value) const {
    Tensor tensor{value.type.shape, {}};
    if (const auto* blob = std::get_if<BlobReference>(&value.elements)) {
      if (!is_float(value.type.data_type)) {
        throw_error(ErrorCode::kUnsupported, blob->path, "{}, expected fp16 or fp32 for a constant",
                    to_string(value.type));
      }
      tensor.values = floats_of(weights_.at(blob->path)->at(blob->offset));
    } else if (const auto* floats = std::get_if<std::vector<double>>(&value.elements)) {
      for (const double element : *floats) tensor.values.push_back(static_cast<float>(element));
    } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value.elements)) {
      for (const std::int64_t element : *integers) {
        tensor.values.push_back(static_cast<float>(element));
      }
    }
    return tensor;
  }

  // constexpr_lut_to_dense: w[i…] = lut[i0 g0 / D0, …, index[i…], 0].
  Tensor load_palettized(const Statement& statement) const {
    const auto& indices = std::get<Value>(*statement.argument("indices"));
    const auto& lut = std::get<Value>(*statement.argument("lut"));
    const auto& blob = std::get<BlobReference>(indices.elements);
    const BlobRecord& record = weights_.at(blob.path)->at(blob.offset);
    const unsigned bits = bits_per_element(record.type);
    const auto packed = unpack_bits(record.data, record.element_count, bits);
    const Tensor tables = load(lut);
    const Shape& shape = indices.type.shape;
    Tensor dense{shape, std::vector<float>(packed.size())};
    std::vector<Index> position(shape.size(), 0);
    for (Index i = 0; i < packed.size(); ++i) {
      Index table = 0;
      for (Index axis = 0; axis < shape.size(); ++axis) {
        const Index groups = at(lut.type.shape, axis);
        table = table * groups + position[axis] * groups / at(shape, axis);
      }
      dense.values[i] = tables.values[(table << bits) + packed[i]];
      for (Index axis = shape.size(); axis-- > 0;) {
        if (++position[axis] < at(shape, axis)) break;
        position[axis] = 0;
      }
    }
    return dense;
  }

 private:
  float rounded(double value, const ValueType& type) const {
    if (type.data_type == DataType::kBool) return value != 0 ? 1.0f : 0.0f;
    if (type.data_type == DataType::kFloat32) return static_cast<float>(value);
    return round_to_half(profile_, value);
  }
  float rounded(double value) const { return rounded(value, statement_->outputs[0].type); }

  void check(const std::string& name, const Tensor& tensor) const {
    if (profile_ != NumericProfile::kStrict) return;
    for (Index i = 0; i < tensor.values.size(); ++i) {
      if (std::isfinite(tensor.values[i])) continue;
      throw_error(ErrorCode::kCorruptData, name, "{}: element {} is {}, expected a finite number",
                  statement_->op, i, tensor.values[i]);
    }
  }

  float summed(const float* x, const float* y, Index count) const {
    const Dot result = dot(profile_, x, y, count);
    if (profile_ == NumericProfile::kStrict && !result.is_in_range) {
      throw_error(ErrorCode::kCorruptData, statement_->outputs[0].name,
                  "{}: a sum reached 2^15, half of what FP16 holds", statement_->op);
    }
    return result.value;
  }

  // A value that stands in the statement is loaded into `inline_`, until the next statement.
  const Tensor& argument(std::string_view name) const {
    const Argument& given = *statement_->argument(name);
    if (const auto* value = std::get_if<Value>(&given)) return inline_.emplace_back(load(*value));
    return tensor(std::get<std::string>(given));
  }

  std::vector<Tensor> evaluate() const {
    const std::string& op = statement_->op;
    if (op == "conv") return {conv()};
    if (op == "matmul") return {matmul()};
    if (op == "transpose") return {transpose(argument("x"), operands_->integers("perm"))};
    if (op == "reshape" || op == "expand_dims" || op == "squeeze") return {argument("x")};
    if (op == "slice_by_size") return {slice(operands_->integers("begin"), result_shape())};
    if (op == "split") return split();
    if (op == "concat") return {concat()};
    if (op == "tile") return {tile()};
    if (op == "pad") return {pad()};
    if (op == "select") return {select()};
    if (op == "softmax") return {softmax()};
    if (op == "l2_norm") return {l2_norm()};
    if (op == "layer_norm") return {layer_norm()};
    if (op.starts_with("reduce_")) return {reduce()};
    if (statement_->argument("y") != nullptr) return {binary()};
    return {unary()};
  }

  const Shape& result_shape() const { return statement_->outputs[0].type.shape; }

  Tensor unary() const {
    const std::string& op = statement_->op;
    Tensor x = argument("x");
    const double epsilon = operands_->has("epsilon") ? operands_->number("epsilon") : 0;
    const double low = op == "clip" ? operands_->number("alpha") : 0;
    const double high = op == "clip" ? operands_->number("beta") : 0;
    for (float& value : x.values) {
      double result = value;
      if (op == "rsqrt") {
        result = 1 / std::sqrt(value + epsilon);
      } else if (op == "inverse") {
        result = 1 / (value + epsilon);
      } else if (op == "log") {
        result =
            is_hardware(profile_) && value + epsilon == 0 ? kLogOfZero : std::log(value + epsilon);
      } else if (op == "clip") {
        result = std::clamp<double>(value, low, high);
      } else if (op != "cast") {
        result = activation(op, value, profile_);
      }
      value = rounded(result);
    }
    return x;
  }

  Tensor binary() const {
    const Tensor &x = argument("x"), &y = argument("y");
    Tensor out{result_shape(), std::vector<float>(count_of(result_shape()))};
    for_each<2>(out.shape, {steps_within(x.shape, out.shape), steps_within(y.shape, out.shape)},
                [&](Index i, const std::array<Index, 2>& places) {
                  out.values[i] =
                      rounded(combined(statement_->op, x.values[places[0]], y.values[places[1]]));
                });
    return out;
  }

  Tensor select() const {
    const Tensor &cond = argument("cond"), &a = argument("a"), &b = argument("b");
    Tensor out{result_shape(), std::vector<float>(count_of(result_shape()))};
    for_each<3>(out.shape,
                {steps_within(cond.shape, out.shape), steps_within(a.shape, out.shape),
                 steps_within(b.shape, out.shape)},
                [&](Index i, const std::array<Index, 3>& places) {
                  out.values[i] =
                      cond.values[places[0]] != 0 ? a.values[places[1]] : b.values[places[2]];
                });
    return out;
  }

  Tensor transpose(const Tensor& x, const Shape& perm) const {
    const std::vector<Index> steps = row_major_steps(x.shape);
    std::vector<Index> turned;
    Tensor out{{}, std::vector<float>(x.values.size())};
    for (const std::int64_t axis : perm) {
      const Index from = from_front(axis, perm.size());
      out.shape.push_back(x.shape[from]);
      turned.push_back(steps[from]);
    }
    for_each<1>(out.shape, {turned}, [&](Index i, const std::array<Index, 1>& place) {
      out.values[i] = x.values[place[0]];
    });
    return out;
  }

  // [1, I, H, W] by [O, I / groups, h, w]: each output is one sum over a column of inputs.
  Tensor conv() const {
    const Tensor &x = argument("x"), &weight = argument("weight");
    const auto strides = operands_->integers("strides");
    const auto dilations = operands_->integers("dilations");
    auto pad = operands_->integers("pad");
    if (operands_->text("pad_type") == "valid") std::ranges::fill(pad, 0);
    const auto groups = static_cast<Index>(operands_->integer("groups"));
    Tensor out{result_shape(), std::vector<float>(count_of(result_shape()))};
    const Index in_group = at(weight.shape, 1), out_group = at(out.shape, 1) / groups;
    const Index height = at(out.shape, 2), width = at(out.shape, 3);
    const Index kernel = in_group * at(weight.shape, 2) * at(weight.shape, 3);
    std::vector<float> column(kernel);
    const Tensor bias = operands_->has("bias") ? argument("bias") : Tensor{};
    for (Index n = 0; n < at(out.shape, 0); ++n) {
      for (Index group = 0; group < groups; ++group) {
        for (Index row = 0; row < height; ++row) {
          for (Index place = 0; place < width; ++place) {
            Index k = 0;
            for (Index c = 0; c < in_group; ++c) {
              for (std::int64_t i = 0; i < weight.shape[2]; ++i) {
                for (std::int64_t j = 0; j < weight.shape[3]; ++j) {
                  const std::int64_t h =
                      static_cast<std::int64_t>(row) * strides[0] + i * dilations[0] - pad[0];
                  const std::int64_t w =
                      static_cast<std::int64_t>(place) * strides[1] + j * dilations[1] - pad[2];
                  const bool is_inside = h >= 0 && h < x.shape[2] && w >= 0 && w < x.shape[3];
                  const Index channel = (n * at(x.shape, 1)) + group * in_group + c;
                  column[k++] = is_inside
                                    ? x.values[(channel * at(x.shape, 2) + static_cast<Index>(h)) *
                                                   at(x.shape, 3) +
                                               static_cast<Index>(w)]
                                    : 0.0f;
                }
              }
            }
            for (Index o = 0; o < out_group; ++o) {
              const Index channel = group * out_group + o;
              float value = summed(column.data(), weight.values.data() + channel * kernel, kernel);
              if (!bias.values.empty()) value = rounded(double{value} + bias.values[channel]);
              out.values[((n * at(out.shape, 1) + channel) * height + row) * width + place] = value;
            }
          }
        }
      }
    }
    return out;
  }

  Tensor matmul() const {
    const auto flag = [&](const char* name) {
      return operands_->has(name) && operands_->boolean(name);
    };
    // Rows of x and columns of y, each beside the other in memory.
    const auto with_last_two_swapped = [&](const Tensor& tensor) {
      Shape perm(tensor.shape.size());
      std::iota(perm.begin(), perm.end(), 0);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      return transpose(tensor, perm);
    };
    Tensor x = argument("x"), y = argument("y");
    if (flag("transpose_x")) x = with_last_two_swapped(x);
    if (!flag("transpose_y")) y = with_last_two_swapped(y);
    Tensor out{result_shape(), std::vector<float>(count_of(result_shape()))};
    const Index rank = out.shape.size();
    const Index rows = at(out.shape, rank - 2), columns = at(out.shape, rank - 1);
    const Index inner = at(x.shape, rank - 1);
    const auto batch_of = [](const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); };
    const Shape batch = batch_of(out.shape);
    for_each<2>(batch,
                {steps_within(batch_of(x.shape), batch), steps_within(batch_of(y.shape), batch)},
                [&](Index i, const std::array<Index, 2>& places) {
                  for (Index row = 0; row < rows; ++row) {
                    for (Index column = 0; column < columns; ++column) {
                      out.values[(i * rows + row) * columns + column] =
                          summed(x.values.data() + (places[0] * rows + row) * inner,
                                 y.values.data() + (places[1] * columns + column) * inner, inner);
                    }
                  }
                });
    return out;
  }

  Tensor slice(const Shape& begin, const Shape& size) const {
    const Tensor& x = argument("x");
    const std::vector<Index> steps = row_major_steps(x.shape);
    Index first = 0;
    for (Index i = 0; i < begin.size(); ++i) first += at(begin, i) * steps[i];
    Tensor out{size, std::vector<float>(count_of(size))};
    for_each<1>(size, {steps}, [&](Index i, const std::array<Index, 1>& place) {
      out.values[i] = x.values[first + place[0]];
    });
    return out;
  }

  Index axis_argument(const Shape& shape) const {
    return from_front(operands_->integer("axis"), shape.size());
  }

  std::vector<Tensor> split() const {
    std::vector<Tensor> parts;
    Shape begin(statement_->outputs[0].type.shape.size(), 0);
    const Index axis = axis_argument(begin);
    for (const Variable& output : statement_->outputs) {
      parts.push_back(slice(begin, output.type.shape));
      begin[axis] += output.type.shape[axis];
    }
    return parts;
  }

  Tensor concat() const {
    Tensor out{result_shape(), std::vector<float>(count_of(result_shape()))};
    const Index axis = axis_argument(out.shape);
    Index outer = 1, inner = 1, first = 0;
    for (Index i = 0; i < axis; ++i) outer *= at(out.shape, i);
    for (Index i = axis + 1; i < out.shape.size(); ++i) inner *= at(out.shape, i);
    const Index stride = at(out.shape, axis) * inner;
    for (const std::string& name :
         std::get<std::vector<std::string>>(*statement_->argument("values"))) {
      const Tensor& part = tensor(name);
      const Index length = at(part.shape, axis) * inner;
      for (Index i = 0; i < outer; ++i) {
        std::copy_n(part.values.begin() + static_cast<std::ptrdiff_t>(i * length), length,
                    out.values.begin() + static_cast<std::ptrdiff_t>(i * stride + first));
      }
      first += length;
    }
    return out;
  }

  Tensor tile() const {
    const Tensor& x = argument("x");
    Tensor out{result_shape(), std::vector<float>(count_of(result_shape()))};
    std::vector<Index> position(out.shape.size(), 0);
    for (float& value : out.values) {
      Index place = 0;
      for (Index i = 0; i < position.size(); ++i) {
        place = place * at(x.shape, i) + position[i] % at(x.shape, i);
      }
      value = x.values[place];
      for (Index i = position.size(); i-- > 0;) {
        if (++position[i] < at(out.shape, i)) break;
        position[i] = 0;
      }
    }
    return out;
  }

  Tensor pad() const {
    const Tensor& x = argument("x");
    const auto pad = operands_->integers("pad");
    Tensor out{result_shape(),
               std::vector<float>(count_of(result_shape()),
                                  static_cast<float>(operands_->number("constant_val")))};
    const Index first_axis = out.shape.size() - pad.size() / 2;
    const std::vector<Index> steps = row_major_steps(out.shape);
    Index first = 0;
    for (Index i = 0; i < pad.size(); i += 2) first += at(pad, i) * steps[first_axis + i / 2];
    for_each<1>(x.shape, {steps}, [&](Index i, const std::array<Index, 1>& place) {
      out.values[first + place[0]] = x.values[i];
    });
    return out;
  }

  // Calls function(values) with the elements of each line along the axes that are reduced, and
  // writes what it returns.
  template <typename Function>
  Tensor over_lines(const Tensor& x, const std::vector<bool>& is_reduced,
                    Function&& function) const {
    Shape outer, inner;
    const std::vector<Index> steps = row_major_steps(x.shape);
    std::vector<Index> outer_steps, inner_steps;
    for (Index i = 0; i < x.shape.size(); ++i) {
      (is_reduced[i] ? inner : outer).push_back(x.shape[i]);
      (is_reduced[i] ? inner_steps : outer_steps).push_back(steps[i]);
    }
    Tensor out;
    std::vector<Index> offsets(count_of(inner));
    for_each<1>(inner, {inner_steps},
                [&](Index i, const std::array<Index, 1>& place) { offsets[i] = place[0]; });
    std::vector<float> line(offsets.size());
    for_each<1>(outer, {outer_steps}, [&](Index, const std::array<Index, 1>& place) {
      for (Index i = 0; i < offsets.size(); ++i) line[i] = x.values[place[0] + offsets[i]];
      function(line, place[0], offsets, out);
    });
    return out;
  }

  std::vector<bool> reduced_axes(const Shape& shape) const {
    std::vector<bool> marks(shape.size(), false);
    for (const std::int64_t axis : operands_->integers("axes")) {
      marks[from_front(axis, shape.size())] = true;
    }
    return marks;
  }

  Tensor reduce() const {
    const Tensor& x = argument("x");
    const std::string& op = statement_->op;
    return over_lines(x, reduced_axes(x.shape),
                      [&](const std::vector<float>& line, Index, const auto&, Tensor& out) {
                        double result = op == "reduce_max" || op == "reduce_min" ? line[0] : 0.0;
                        for (const float value : line) {
                          if (op == "reduce_max") {
                            result = std::max<double>(result, value);
                          } else if (op == "reduce_min") {
                            result = std::min<double>(result, value);
                          } else {
                            result += op == "reduce_sum_square" ? double{value} * value : value;
                          }
                        }
                        if (op == "reduce_mean") result /= static_cast<double>(line.size());
                        out.values.push_back(rounded(result));
                      });
  }

  // Writes back a line of which every element changes.
  template <typename Change>
  Tensor changed_lines(const Tensor& x, const std::vector<bool>& axes, Change&& change) const {
    Tensor result = x;
    over_lines(
        x, axes,
        [&](std::vector<float>& line, Index first, const std::vector<Index>& offsets, Tensor&) {
          change(line);
          for (Index i = 0; i < line.size(); ++i) {
            result.values[first + offsets[i]] = rounded(line[i]);
          }
        });
    return result;
  }

  Tensor softmax() const {
    const Tensor& x = argument("x");
    std::vector<bool> axes(x.shape.size(), false);
    axes[axis_argument(x.shape)] = true;
    return changed_lines(x, axes, [](std::vector<float>& line) {
      const float largest = *std::ranges::max_element(line);
      double sum = 0;
      for (float& value : line) {
        value = std::exp(value - largest);
        sum += value;
      }
      for (float& value : line) value = static_cast<float>(value / sum);
    });
  }

  // Over all axes after the first, as Core ML has it.
  Tensor l2_norm() const {
    const Tensor& x = argument("x");
    const double epsilon = operands_->number("epsilon");
    std::vector<bool> axes(x.shape.size(), true);
    if (axes.size() > 3) std::fill(axes.begin(), axes.end() - 3, false);
    return changed_lines(x, axes, [&](std::vector<float>& line) {
      double sum = 0;
      for (const float value : line) sum += double{value} * value;
      for (float& value : line) value = static_cast<float>(value / std::sqrt(sum + epsilon));
    });
  }

  Tensor layer_norm() const {
    const Tensor& x = argument("x");
    const double epsilon = operands_->has("epsilon") ? operands_->number("epsilon") : 1e-5;
    const Tensor gamma = operands_->has("gamma") ? argument("gamma") : Tensor{};
    const Tensor beta = operands_->has("beta") ? argument("beta") : Tensor{};
    return changed_lines(x, reduced_axes(x.shape), [&](std::vector<float>& line) {
      double mean = 0, variance = 0;
      const auto count = static_cast<double>(line.size());
      for (const float value : line) mean += value / count;
      for (const float value : line) variance += (value - mean) * (value - mean) / count;
      for (Index i = 0; i < line.size(); ++i) {
        double value = (line[i] - mean) / std::sqrt(variance + epsilon);
        if (!gamma.values.empty()) value *= gamma.values[i];
        if (!beta.values.empty()) value += beta.values[i];
        line[i] = static_cast<float>(value);
      }
    });
  }

  const NumericProfile profile_;
  const WeightFiles& weights_;
  const Tensors& constants_;
  const Simulator::Watcher& watcher_;
  const Statement* statement_ = nullptr;
  const Operands* operands_ = nullptr;
  Scope scope_;
  Tensors results_;
  mutable std::list<Tensor> inline_;
};

bool is_constant(const Statement& statement) {
  return statement.op == "const" || statement.op.starts_with("constexpr_");
}

}  // namespace

Tensor zeros(Shape shape) {
  const Index size = count_of(shape);
  return {std::move(shape), std::vector<float>(size)};
}

Simulator::Simulator(const Program& program, const WeightFiles& weights, NumericProfile profile)
    : program_(program), weights_(weights), profile_(profile) {
  // Larger than what a Neural Engine takes is no reason not to compute it.
  CheckLimits no_limits;
  no_limits.max_channels = no_limits.max_axis = no_limits.max_conv_outputs = std::int64_t{1} << 40;
  no_limits.max_weight_bytes = ~std::uint64_t{0};
  require_sound(program, weights, ErrorCode::kCorruptData, "program", no_limits);
  for (const Function& function : program.functions) load_constants(function);
}

void Simulator::load_constants(const Function& function) {
  Tensors& constants = constants_[function.name];
  const Pass pass(profile_, weights_, constants, watcher_);
  for (const Statement& statement : function.statements) {
    if (!is_constant(statement)) continue;
    const Variable& output = statement.outputs[0];
    if (statement.op == "constexpr_lut_to_dense") {
      constants[output.name] = pass.load_palettized(statement);
    } else if (output.type.data_type != DataType::kString) {
      constants[output.name] = pass.load(*statement.attribute("val"));
    }
  }
}

Tensors Simulator::run(const Tensors& inputs, const std::string& function_name) const {
  const auto function = std::ranges::find(program_.functions, function_name, &Function::name);
  if (function == program_.functions.end()) {
    throw_error(ErrorCode::kInvalidArgument, function_name, "no function of this name");
  }
  Pass pass(profile_, weights_, constants_.at(function_name), watcher_);
  for (const Variable& input : function->inputs) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end() || given->second.shape != input.type.shape ||
        given->second.values.size() != count_of(input.type.shape)) {
      throw_error(ErrorCode::kInvalidArgument, input.name, "{}, expected {}",
                  given == inputs.end()
                      ? "missing"
                      : fmt::format("[{}] with {} elements", fmt::join(given->second.shape, ", "),
                                    given->second.values.size()),
                  to_string(input.type));
    }
    pass.define(input.name, input.type, given->second);
  }
  for (const Statement& statement : function->statements) {
    if (is_constant(statement)) {
      pass.define_constant(statement);
    } else {
      pass.run(statement);
    }
  }
  Tensors outputs;
  for (const std::string& name : function->outputs) outputs[name] = pass.tensor(name);
  return outputs;
}

}  // namespace clefkit::mil
