#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "clefkit/model/model.h"

namespace clefkit {

// Opens whatever kind of model directory this is. Throws Error as open_checkpoint does.
Model open_model(const std::filesystem::path& directory);

// Tells models apart in answers and logs, 64 hex digits. A bundle's is the SHA-256 of its manifest,
// which holds the SHA-256 of everything; a checkpoint's is of its JSON files and of the names and
// sizes of the others: reading nineteen gigabytes at every start would be too much.
std::string model_digest(const std::filesystem::path& directory);

// Of all files in it.
std::uint64_t model_size_bytes(const std::filesystem::path& directory);

// Its JSON files alone. The configuration of a text-only bundle has no vision.
ModelFiles open_files(const std::filesystem::path& directory);

}  // namespace clefkit
