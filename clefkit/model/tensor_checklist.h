#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "clefkit/model/tensor_plan.h"

namespace clefkit {

// The planned tensors that a file or a set of files must hold, each exactly once. The plan must
// outlive the list.
class TensorChecklist {
 public:
  // Takes the part of the plan for which `belongs` says so.
  template <typename Predicate>
  TensorChecklist(const std::vector<PlannedTensor>& plan, Predicate&& belongs) {
    for (const PlannedTensor& tensor : plan) {
      if (!belongs(tensor)) continue;
      order_.push_back(&tensor);
      missing_.emplace(tensor.name, &tensor);
    }
  }

  // Ticks a tensor off. Throws Error(kCorruptData) when it is not planned, was there before, or has
  // another shape; `where` names the file.
  const PlannedTensor& take(const std::string& name, std::span<const std::size_t> shape,
                            const std::string& where);

  // Throws Error(kCorruptData) naming the first tensor, in the order of the plan, that was not
  // taken.
  void check_complete(const std::string& where) const;

 private:
  std::vector<const PlannedTensor*> order_;
  std::unordered_map<std::string, const PlannedTensor*> missing_;
};

// "BF16" or "BF16 or F32".
std::string_view allowed_types(const PlannedTensor& tensor);

}  // namespace clefkit
