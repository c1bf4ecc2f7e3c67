#include "clefkit/model/tensor_checklist.h"

#include <algorithm>

#include "clefkit/base/error.h"
#include "clefkit/safetensors/tensor_view.h"

namespace clefkit {

std::string_view allowed_types(const PlannedTensor& tensor) {
  return tensor.allows_float32 ? "BF16 or F32" : "BF16";
}

const PlannedTensor& TensorChecklist::take(const std::string& name,
                                           std::span<const std::size_t> shape,
                                           const std::string& where) {
  const auto planned = missing_.find(name);
  if (planned == missing_.end()) {
    throw_error(
        ErrorCode::kCorruptData, where + ": " + name,
        "the tensor has no place in this architecture, expected only those of config.json, once");
  }
  const PlannedTensor& plan = *planned->second;
  if (!std::ranges::equal(shape, plan.shape)) {
    throw_error(ErrorCode::kCorruptData, where + ": " + name, "shape {}, expected {}",
                shape_text(shape), shape_text(plan.shape));
  }
  missing_.erase(planned);
  return plan;
}

void TensorChecklist::check_complete(const std::string& where) const {
  for (const PlannedTensor* tensor : order_) {
    if (!missing_.contains(tensor->name)) continue;
    throw_error(ErrorCode::kCorruptData, where, "{} is missing, expected {} of shape {}{}",
                tensor->name, allowed_types(*tensor), shape_text(tensor->shape),
                missing_.size() > 1 ? fmt::format(" (and {} more)", missing_.size() - 1) : "");
  }
}

}  // namespace clefkit
