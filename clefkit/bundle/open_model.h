#pragma once

#include <filesystem>

#include "clefkit/model/model.h"

namespace clefkit {

// Opens whatever kind of model directory this is. Throws Error as open_checkpoint does.
Model open_model(const std::filesystem::path& directory);

// Its JSON files alone. The configuration of a text-only bundle has no vision.
ModelFiles open_files(const std::filesystem::path& directory);

}  // namespace clefkit
