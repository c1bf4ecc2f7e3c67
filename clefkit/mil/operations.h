#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/mil/program.h"

namespace clefkit::mil {

// What a name stands for within a function.
struct Definition {
  ValueType type{};
  const Value* constant = nullptr;  // Of a `const` statement.
  bool is_weight = false;  // Of a `const` or `constexpr_…` statement: known when compiled.
};
using Scope = std::map<std::string, Definition, std::less<>>;

// A statement's arguments by name, looked up in the scope before it. All throw
// Error(kInvalidArgument) with the argument's name as its place.
class Operands {
 public:
  Operands(const Statement& statement, const Scope& scope) : statement_(statement), scope_(scope) {}

  bool has(std::string_view name) const { return statement_.argument(name) != nullptr; }
  ValueType type(std::string_view name) const;
  // Of an argument that is a tuple of names.
  std::vector<ValueType> types(std::string_view name) const;
  // Whether a compiler knows its elements.
  bool is_weight(std::string_view name) const;

  // Of arguments that must be constants; `integers` is a vector of int32.
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::string text(std::string_view name) const;

 private:
  const Argument& argument(std::string_view name) const;
  Definition definition(std::string_view name) const;
  const Value& constant(std::string_view name) const;
  const Value& constant_of(std::string_view name, DataType type) const;

  const Statement& statement_;
  const Scope& scope_;
};

// One operation: Core ML's name and argument names, and what comes of which arguments.
struct Operation {
  std::string_view name;
  std::vector<std::string_view> required;
  std::vector<std::string_view> optional;
  // The types of its results. Throws Error(kInvalidArgument) with the argument's name.
  std::vector<ValueType> (*infer)(const Operands& operands);
};

// The operations that programs of ours may use (ane.md 3.2), `const` and blobs aside.
std::span<const Operation> operations();
const Operation* find_operation(std::string_view name);

}  // namespace clefkit::mil
