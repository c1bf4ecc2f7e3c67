#pragma once

#include <memory>
#include <string_view>

#include "clefkit/backend/backend.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit {

// The backend of that name; `auto` takes the best one this machine has. The model must outlive it.
// Throws Error(kInvalidArgument) for a name that is none, kUnsupported for one that is not in this
// build, kCorruptData when a weight does not have the shape that the configuration calls for.
std::unique_ptr<Backend> make_backend(std::string_view name, const Model& model,
                                      Precision precision);

}  // namespace clefkit
