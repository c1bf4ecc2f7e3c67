#include "clefkit/bundle/open_model.h"

#include "clefkit/bundle/open_bundle.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {

Model open_model(const std::filesystem::path& directory) {
  return is_bundle(directory) ? open_bundle(directory) : open_checkpoint(directory);
}

ModelFiles open_files(const std::filesystem::path& directory) {
  ModelFiles files = open_model_files(directory);
  if (is_bundle(directory) && read_manifest(directory).text_only) files.config.vision = {};
  return files;
}

}  // namespace clefkit
