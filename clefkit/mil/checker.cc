#include "clefkit/mil/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "clefkit/base/error.h"
#include "clefkit/mil/operations.h"

namespace clefkit::mil {
namespace {

constexpr std::string_view kConst = "const";
constexpr std::string_view kConstexpr = "constexpr_";

class Checker {
 public:
  Checker(const WeightFiles& weights, const CheckLimits& limits)
      : weights_(weights), limits_(limits) {}

  std::vector<Problem> run(const Program& program) {
    if (program.version != "1.0" && program.version != "1.3") {
      add("", "version {}, expected 1.0 or 1.3", program.version);
    }
    if (program.build_info.empty()) add("", "no buildInfo");
    if (program.functions.empty()) add("", "no function");
    std::set<std::string> names;
    for (const Function& function : program.functions) {
      if (!names.insert(function.name).second) add(function.name, "a second function of this name");
      check(function);
    }
    return std::move(problems_);
  }

 private:
  template <typename... Args>
  void add(std::string_view name, fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(
        {line_, std::string(name), fmt::format(format, std::forward<Args>(args)...)});
  }

  void check(const Function& function) {
    scope_.clear();
    used_.clear();
    blobs_.clear();
    weight_bytes_ = 0;
    if (!function.opset.starts_with("ios")) add(function.name, "operation set {}", function.opset);
    for (const Variable& input : function.inputs) {
      define(input, {input.type});
      if (!is_float(input.type.data_type)) add(input.name, "an input of no float type");
    }
    for (const Statement& statement : function.statements) {
      line_ = statement.line;
      check(statement);
    }
    line_ = 0;
    check_ends(function);
    if (weight_bytes_ > limits_.max_weight_bytes) {
      add(function.name, "weights of {} bytes, expected at most {}", weight_bytes_,
          limits_.max_weight_bytes);
    }
  }

  // Outputs exist and are computed; nothing is left over. Dead statements can break a compile.
  void check_ends(const Function& function) {
    if (function.outputs.empty()) add(function.name, "no output");
    std::set<std::string> outputs;
    for (const std::string& output : function.outputs) {
      const auto found = scope_.find(output);
      if (found == scope_.end()) {
        add(output, "an output that nothing defines");
      } else if (found->second.is_weight) {
        add(output, "an output that is a constant");
      }
      if (!outputs.insert(output).second) add(output, "an output twice");
      used_.insert(output);
    }
    for (const Variable& input : function.inputs) {
      if (!used_.contains(input.name)) add(input.name, "an input that nothing uses");
    }
    for (const Statement& statement : function.statements) {
      const bool is_used = std::ranges::any_of(
          statement.outputs, [&](const Variable& output) { return used_.contains(output.name); });
      if (is_used) continue;
      line_ = statement.line;
      add(statement.outputs.empty() ? "" : statement.outputs[0].name, "nothing uses it");
    }
    line_ = 0;
  }

  void define(const Variable& variable, Definition definition) {
    check_type(variable);
    if (!scope_.try_emplace(variable.name, std::move(definition)).second) {
      add(variable.name, "a second definition of this name");
    }
  }

  void check_type(const Variable& variable) {
    const Shape& shape = variable.type.shape;
    // Weights may have more axes: a table has those of its weight and two more.
    if (shape.size() > limits_.max_rank + 2) {
      add(variable.name, "rank {}, expected at most {}", shape.size(), limits_.max_rank);
    }
    for (const std::int64_t size : shape) {
      if (size < 1) add(variable.name, "an axis of {} elements", size);
    }
  }

  // What the Neural Engine can hold.
  void check_size(const Variable& variable) {
    const Shape& shape = variable.type.shape;
    if (shape.size() > limits_.max_rank) {
      add(variable.name, "rank {}, expected at most {}", shape.size(), limits_.max_rank);
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t most =
          i == 1 && shape.size() >= 4 ? limits_.max_channels : limits_.max_axis;
      if (shape[i] > most)
        add(variable.name, "axis {} of {}, expected at most {}", i, shape[i], most);
    }
  }

  void check(const Statement& statement) {
    if (statement.outputs.empty()) return add("", "{}: no result", statement.op);
    use_arguments(statement);
    check_name_attribute(statement);
    if (statement.op == kConst) return check_const(statement);
    const bool is_weight = statement.op.starts_with(kConstexpr);
    for (const auto& [name, value] : statement.attributes) {
      if (name != "name") add(statement.outputs[0].name, "{}: attribute {}", statement.op, name);
    }
    const Operation* const operation = find_operation(statement.op);
    if (operation == nullptr) {
      add(statement.outputs[0].name, "{}: no operation that is known here", statement.op);
    } else {
      check_arguments(statement, *operation);
    }
    for (const Variable& output : statement.outputs) {
      if (!is_weight) check_size(output);
      define(output, {output.type, nullptr, is_weight});
    }
  }

  void use_arguments(const Statement& statement) {
    for (const auto& [argument_name, argument] : statement.arguments) {
      if (const auto* name = std::get_if<std::string>(&argument)) {
        used_.insert(*name);
      } else if (const auto* names = std::get_if<std::vector<std::string>>(&argument)) {
        used_.insert(names->begin(), names->end());
      } else {
        check_value(std::get<Value>(argument), statement.outputs[0].name);
      }
    }
  }

  void check_name_attribute(const Statement& statement) {
    const Value* const name = statement.attribute("name");
    if (name != nullptr && name->type == ValueType{DataType::kString}) return;
    add(statement.outputs[0].name, "{}: no attribute name", statement.op);
  }

  void check_const(const Statement& statement) {
    const Variable& output = statement.outputs[0];
    const Value* const value = statement.attribute("val");
    if (value == nullptr || statement.outputs.size() != 1 || !statement.arguments.empty()) {
      add(output.name, "const: expected one result, no arguments, and the attribute val");
    } else if (value->type != output.type) {
      add(output.name, "const: val is {}, expected {}", to_string(value->type),
          to_string(output.type));
    } else {
      check_value(*value, output.name);
    }
    define(output, {output.type, value, true});
  }

  void check_value(const Value& value, const std::string& name) {
    const auto* const blob = std::get_if<BlobReference>(&value.elements);
    if (blob == nullptr) {
      const auto count = static_cast<std::size_t>(element_count(value.type.shape));
      const std::size_t found = std::visit(
          [](const auto& elements) -> std::size_t {
            if constexpr (requires { elements.size(); }) return elements.size();
            return 0;
          },
          value.elements);
      if (found != count) add(name, "{} elements, expected {}", found, count);
      return;
    }
    const auto file = weights_.find(blob->path);
    if (file == weights_.end()) return add(name, "no weight file {}", blob->path);
    try {
      const BlobRecord& record = file->second->at(blob->offset);
      if (blobs_.emplace(blob->path, blob->offset).second) weight_bytes_ += record.data.size();
      if (blob_type(value.type.data_type) != record.type) {
        add(name, "the blob at {} has elements of another type than {}", blob->offset,
            to_string(value.type.data_type));
      } else if (record.element_count !=
                 static_cast<std::uint64_t>(element_count(value.type.shape))) {
        add(name, "the blob at {} has {} elements, expected {}", blob->offset, record.element_count,
            to_string(value.type));
      }
    } catch (const Error& error) {
      add(name, "{}", error.message());
    }
  }

  void check_arguments(const Statement& statement, const Operation& operation) {
    const std::string& name = statement.outputs[0].name;
    bool is_complete = true;
    for (const std::string_view required : operation.required) {
      if (statement.argument(required) != nullptr) continue;
      add(name, "{}: no argument {}", statement.op, required);
      is_complete = false;
    }
    for (const auto& [argument, value] : statement.arguments) {
      if (std::ranges::find(operation.required, argument) == operation.required.end() &&
          std::ranges::find(operation.optional, argument) == operation.optional.end()) {
        add(name, "{}: no argument is called {}", statement.op, argument);
      }
    }
    if (!is_complete) return;
    try {
      const Operands operands(statement, scope_);
      check_results(statement, operation.infer(operands));
      check_engine_rules(statement, operands);
    } catch (const Error& error) {
      add(name, "{}: {}: {}", statement.op, error.where(), error.message());
    }
  }

  void check_results(const Statement& statement, const std::vector<ValueType>& types) {
    if (types.size() != statement.outputs.size()) {
      return add(statement.outputs[0].name, "{}: {} results, expected {}", statement.op,
                 statement.outputs.size(), types.size());
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Variable& output = statement.outputs[i];
      if (output.type == types[i]) continue;
      add(output.name, "{}: declared as {}, expected {}", statement.op, to_string(output.type),
          to_string(types[i]));
    }
  }

  // What Core ML allows and the Neural Engine does not.
  void check_engine_rules(const Statement& statement, const Operands& operands) {
    const std::string& name = statement.outputs[0].name;
    if (statement.op == "conv") {
      const std::int64_t outputs = operands.type("weight").shape[0];
      if (outputs > limits_.max_conv_outputs) {
        add(name, "conv: {} output channels, expected at most {}", outputs,
            limits_.max_conv_outputs);
      }
    }
    // Saturates or reads the wrong place on some (ane.md 3.2).
    if (statement.op == "slice_by_size" && operands.integers("begin").back() != 0) {
      add(name, "slice_by_size: an offset on the last axis");
    }
  }

  const WeightFiles& weights_;
  const CheckLimits& limits_;
  std::vector<Problem> problems_;
  std::size_t line_ = 0;
  Scope scope_;
  std::set<std::string, std::less<>> used_;
  std::set<std::pair<std::string, std::uint64_t>> blobs_;  // That were counted.
  std::uint64_t weight_bytes_ = 0;
};

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text;
  if (problem.line != 0) text += fmt::format("{}: ", problem.line);
  if (!problem.name.empty()) text += problem.name + ": ";
  return text + problem.message;
}

std::vector<Problem> check_program(const Program& program, const WeightFiles& weights,
                                   const CheckLimits& limits) {
  return Checker(weights, limits).run(program);
}

void require_sound(const Program& program, const WeightFiles& weights, ErrorCode code,
                   const std::string& where, const CheckLimits& limits) {
  const std::vector<Problem> problems = check_program(program, weights, limits);
  if (problems.empty()) return;
  throw_error(code, where, "{}{}", to_string(problems.front()),
              problems.size() == 1 ? "" : fmt::format(" (and {} more)", problems.size() - 1));
}

}  // namespace clefkit::mil
