#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clefkit/mil/checker.h"
#include "clefkit/mil/numerics.h"
#include "clefkit/mil/program.h"

namespace clefkit::mil {

// Elements in row-major order, each exact in the type that the program gives it.
struct Tensor {
  Shape shape{};
  std::vector<float> values{};

  bool operator==(const Tensor&) const = default;
};
using Tensors = std::map<std::string, Tensor>;
Tensor zeros(Shape shape);

// Runs a program as a Neural Engine would, as far as that is known: slowly, plainly, and after
// nothing but the text and the weights.
class Simulator {
 public:
  // Decodes the weights. Throws Error(kCorruptData) with the problems that the checker finds, and
  // kUnsupported for an operation that is not simulated. `program` and `weights` must outlive it.
  Simulator(const Program& program, const WeightFiles& weights, NumericProfile profile);

  // Computes the outputs of a function from all of its inputs. Throws Error: kInvalidArgument for
  // an input that is missing or has another shape; with the strict profile kCorruptData, naming
  // operation and result, for a sum that reached 2^15 and a result that is not finite.
  Tensors run(const Tensors& inputs, const std::string& function = "main") const;

  // Called with every computed result, for measuring; not with constants.
  using Watcher = std::function<void(const Statement& statement, const Tensor& result)>;
  void watch(Watcher watcher) { watcher_ = std::move(watcher); }

 private:
  void load_constants(const Function& function);

  const Program& program_;
  const WeightFiles& weights_;
  const NumericProfile profile_;
  Watcher watcher_;
  std::map<std::string, Tensors> constants_;  // By function.
};

}  // namespace clefkit::mil
