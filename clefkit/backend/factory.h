#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "clefkit/backend/backend.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"
#include "clefkit/programs/spellings.h"

namespace clefkit {

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  std::string reason{};  // Why `auto` took it; empty when it was asked for by name.
};

// The backend of that name, its programs, if it has any, spelled as this machine's self-test found
// right, unless `spellings` says how. `auto` takes the Neural Engine when its self-test has passed
// on this system and chip with this model (`clefkit doctor`), else the CPU. The model must outlive
// it. Throws Error(kInvalidArgument) for a name that is none, kUnavailable for a device that is not
// there, kCorruptData when a weight does not have the shape that the configuration calls for.
ChosenBackend choose_backend(std::string_view name, const Model& model, Precision precision,
                             const std::optional<Spellings>& spellings = {});

}  // namespace clefkit
