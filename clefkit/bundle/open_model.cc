#include "clefkit/bundle/open_model.h"

#include <set>

#include "clefkit/base/sha256.h"
#include "clefkit/bundle/open_bundle.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {

Model open_model(const std::filesystem::path& directory) {
  return is_bundle(directory) ? open_bundle(directory) : open_checkpoint(directory);
}

std::string model_digest(const std::filesystem::path& directory) {
  if (is_bundle(directory)) return sha256_of_file(directory / kManifestFile);
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  std::string facts;
  for (const std::filesystem::path& file : files) {
    facts += fmt::format("{} {} {}\n", file.filename().string(), std::filesystem::file_size(file),
                         file.extension() == ".json" ? sha256_of_file(file) : "");
  }
  return sha256_hex(as_bytes(facts));
}

std::uint64_t model_size_bytes(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

ModelFiles open_files(const std::filesystem::path& directory) {
  ModelFiles files = open_model_files(directory);
  if (is_bundle(directory) && read_manifest(directory).text_only) files.config.vision = {};
  return files;
}

}  // namespace clefkit
