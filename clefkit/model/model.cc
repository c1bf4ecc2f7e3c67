#include "clefkit/model/model.h"

#include "clefkit/base/error.h"

namespace clefkit {

const Weight& Model::weight(const std::string& tensor_name) const {
  const auto found = weights.find(tensor_name);
  if (found == weights.end()) {
    throw_error(ErrorCode::kNotFound, directory.string(), "has no tensor {}", tensor_name);
  }
  return found->second;
}

const TensorView& Model::tensor(const std::string& tensor_name) const {
  const auto* const dense = std::get_if<TensorView>(&weight(tensor_name));
  if (dense == nullptr) {
    throw_error(ErrorCode::kCorruptData, directory.string(),
                "{} is palettized, expected a dense tensor", tensor_name);
  }
  return *dense;
}

}  // namespace clefkit
