#include "clefkit/bundle/open_model.h"

#include "clefkit/bundle/open_bundle.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit {

Model open_model(const std::filesystem::path& directory) {
  return is_bundle(directory) ? open_bundle(directory) : open_checkpoint(directory);
}

}  // namespace clefkit
