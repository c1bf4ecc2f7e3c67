#pragma once

#include <filesystem>

#include "clefkit/bundle/manifest.h"
#include "clefkit/model/model.h"

namespace clefkit {

// True when the directory is a bundle: it has a manifest.
bool is_bundle(const std::filesystem::path& directory);

// Reads a bundle's manifest.
Manifest read_manifest(const std::filesystem::path& directory);

// Maps a bundle: structure, sizes, shapes and blob records are checked at once, checksums are not
// (`clefkit verify` does that). Reads no weights. A text-only bundle has no vision in its
// configuration. Throws Error: kNotFound, kCorruptData, each naming the file or the manifest's key.
Model open_bundle(const std::filesystem::path& directory);

}  // namespace clefkit
