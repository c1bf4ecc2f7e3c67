#include "clefkit/model/checkpoint.h"

#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/model/tensor_checklist.h"
#include "clefkit/model/tensor_plan.h"
#include "clefkit/safetensors/safetensors_file.h"
#include "clefkit/safetensors/sharded_safetensors.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kConfigLimit = std::uint64_t{4} << 20;
constexpr std::uint64_t kTokenizerLimit = std::uint64_t{256} << 20;

std::string read_if_there(const fs::path& path, std::uint64_t limit_bytes) {
  std::error_code unreadable;
  return fs::exists(path, unreadable) ? read_file(path, limit_bytes) : std::string();
}

}  // namespace

ModelFiles open_model_files(const fs::path& directory) {
  std::error_code unreadable;
  if (!fs::is_directory(directory, unreadable)) {
    throw Error(ErrorCode::kNotFound, directory.string(), "there is no such directory");
  }
  ModelFiles files;
  files.directory = directory;
  // A path may end in a slash or be ".".
  const fs::path full = fs::absolute(directory).lexically_normal();
  files.name = (full.has_filename() ? full : full.parent_path()).filename().string();
  files.config = parse_model_config(read_file(directory / kConfigFile, kConfigLimit),
                                    read_file(directory / kHeadConfigFile, kConfigLimit));
  files.tokenizer_json = read_file(directory / kTokenizerFile, kTokenizerLimit);
  files.tokenizer_config_json = read_if_there(directory / kTokenizerConfigFile, kConfigLimit);
  files.processor_config_json = files.config.has_vision()
                                    ? read_file(directory / kProcessorConfigFile, kConfigLimit)
                                    : read_if_there(directory / kProcessorConfigFile, kConfigLimit);
  return files;
}

void add_tensors(SafetensorsFile file, TensorChecklist& checklist, Model& model) {
  for (const TensorView& tensor : file.tensors()) {
    // Multi-token prediction layers of other releases; nothing here runs them.
    if (tensor.name.starts_with("mtp.")) continue;
    const PlannedTensor& plan = checklist.take(tensor.name, tensor.shape, file.path().string());
    if (!plan.allows(tensor.dtype)) {
      throw_error(ErrorCode::kCorruptData, file.path().string() + ": " + tensor.name,
                  "element type {}, expected {}", to_string(tensor.dtype), allowed_types(plan));
    }
    model.weights.emplace(tensor.name, tensor);
  }
  model.files.push_back(std::move(file).release());
}

void tie_embeddings(Model& model) {
  if (!model.config.text.tie_word_embeddings) return;
  model.weights.emplace("lm_head.weight", model.weight("model.language_model.embed_tokens.weight"));
}

Model open_checkpoint(const fs::path& directory) {
  Model model{open_model_files(directory), {}, {}, {}, {}};
  const std::vector<PlannedTensor> plan = plan_tensors(model.config);

  TensorChecklist backbone(
      plan, [](const PlannedTensor& tensor) { return tensor.file == TensorFile::kBackbone; });
  for (SafetensorsFile& shard : open_sharded_safetensors(directory)) {
    add_tensors(std::move(shard), backbone, model);
  }
  backbone.check_complete(directory.string());
  const fs::path head_path = directory / kHeadWeightsFile;
  TensorChecklist head(
      plan, [](const PlannedTensor& tensor) { return tensor.file == TensorFile::kJointHead; });
  add_tensors(SafetensorsFile(head_path), head, model);
  head.check_complete(head_path.string());

  tie_embeddings(model);
  return model;
}

}  // namespace clefkit
