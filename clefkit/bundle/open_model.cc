#include "clefkit/bundle/open_model.h"

#include "clefkit/model/checkpoint.h"

namespace clefkit {

Model open_model(const std::filesystem::path& directory) { return open_checkpoint(directory); }

}  // namespace clefkit
