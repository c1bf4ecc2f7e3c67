#include "clefkit/mil/printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>

namespace clefkit::mil {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : has_scalars_(program.version != "1.0") {
    add("program({})\n[buildInfo = dict<string, string>({{", program.version);
    const char* separator = "";
    for (const auto& [key, value] : program.build_info) {
      add("{}{{", separator);
      add_quoted(key);
      add(", ");
      add_quoted(value);
      add("}}");
      separator = ", ";
    }
    add("}})]\n{{\n");
    for (const Function& function : program.functions) add_function(function);
    add("}}\n");
  }

  std::string take() { return std::move(text_); }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void add_quoted(std::string_view text) {
    text_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (c == '\n') {
        text_ += "\\n";
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  void add_type(const ValueType& type) {
    if (type.shape.empty() && !has_scalars_) {
      add("tensor<{}, []>", to_string(type.data_type));
    } else {
      add("{}", to_string(type));
    }
  }

  void add_function(const Function& function) {
    add("    func {}<{}>(", function.name, function.opset);
    const char* separator = "";
    for (const Variable& input : function.inputs) {
      add("{}", separator);
      add_type(input.type);
      add(" {}", input.name);
      separator = ", ";
    }
    add(") {{\n");
    for (const Statement& statement : function.statements) add_statement(statement);
    add("    }} -> ({});\n", fmt::join(function.outputs, ", "));
  }

  void add_statement(const Statement& statement) {
    add("        ");
    const char* separator = "";
    for (const Variable& output : statement.outputs) {
      add("{}", separator);
      add_type(output.type);
      add(" {}", output.name);
      separator = ", ";
    }
    add(" = {}(", statement.op);
    separator = "";
    for (const auto& [name, argument] : statement.arguments) {
      add("{}{} = ", separator, name);
      add_argument(argument);
      separator = ", ";
    }
    add(")[");
    separator = "";
    for (const auto& [name, value] : statement.attributes) {
      add("{}{} = ", separator, name);
      add_value(value);
      separator = ", ";
    }
    add("];\n");
  }

  void add_argument(const Argument& argument) {
    if (const auto* name = std::get_if<std::string>(&argument)) {
      add("{}", *name);
    } else if (const auto* names = std::get_if<std::vector<std::string>>(&argument)) {
      add("({})", fmt::join(*names, ", "));
    } else {
      add_value(std::get<Value>(argument));
    }
  }

  void add_value(const Value& value) {
    add_type(value.type);
    add("(");
    if (const auto* blob = std::get_if<BlobReference>(&value.elements)) {
      add("BLOBFILE(path = ");
      add_value(Value::string(blob->path));
      add(", offset = ");
      add_value(Value::scalar(DataType::kUInt64, static_cast<std::int64_t>(blob->offset)));
      add(")");
    } else {
      std::size_t next = 0;
      add_elements(value, 0, next);
    }
    add(")");
  }

  // The elements below one place of `dimension`, as nested lists.
  void add_elements(const Value& value, std::size_t dimension, std::size_t& next) {
    if (dimension == value.type.shape.size()) return add_element(value, next++);
    add("[");
    for (std::int64_t i = 0; i < value.type.shape[dimension]; ++i) {
      if (i > 0) add(", ");
      add_elements(value, dimension + 1, next);
    }
    add("]");
  }

  void add_element(const Value& value, std::size_t index) {
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value.elements)) {
      if (value.type.data_type == DataType::kBool) {
        add("{}", integers->at(index) != 0);
      } else {
        add("{}", integers->at(index));
      }
    } else if (const auto* floats = std::get_if<std::vector<double>>(&value.elements)) {
      add_float(floats->at(index));
    } else {
      add_quoted(std::get<std::vector<std::string>>(value.elements).at(index));
    }
  }

  void add_float(double value) {
    if (std::isnan(value)) {
      add("nan");
    } else if (std::isinf(value)) {
      add("{}", value < 0 ? "-inf" : "inf");
    } else {
      add("{}{:a}", std::signbit(value) ? "-" : "", std::abs(value));
    }
  }

  const bool has_scalars_;
  std::string text_;
};

}  // namespace

std::string to_text(const Program& program) { return Printer(program).take(); }

}  // namespace clefkit::mil
