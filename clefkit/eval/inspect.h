#pragma once

#include "clefkit/base/json.h"
#include "clefkit/model/model.h"

namespace clefkit {

// What a model directory holds, from its headers alone (docs/cli.md, `inspect --json`): kind,
// architecture, parameters and bytes per class of tensors and stored type, for a bundle its
// palettes and the tensors with the largest error.
Json inspect_model(const Model& model);

}  // namespace clefkit
