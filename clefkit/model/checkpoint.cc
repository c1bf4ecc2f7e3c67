#include "clefkit/model/checkpoint.h"

#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
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

// What the plan still misses, by name.
using Expected = std::unordered_map<std::string, const PlannedTensor*>;

Expected expected_of(const std::vector<PlannedTensor>& plan, TensorFile file) {
  Expected expected;
  for (const PlannedTensor& tensor : plan) {
    if (tensor.file == file) expected.emplace(tensor.name, &tensor);
  }
  return expected;
}

std::string_view allowed_types(const PlannedTensor& tensor) {
  return tensor.allows_float32 ? "BF16 or F32" : "BF16";
}

// Moves the file's tensors into the model, and the file with them.
void take_file(SafetensorsFile file, Expected& expected, Model& model) {
  for (const TensorView& tensor : file.tensors()) {
    // Multi-token prediction layers of other releases; nothing here runs them.
    if (tensor.name.starts_with("mtp.")) continue;
    const std::string where = file.path().string() + ": " + tensor.name;
    const auto planned = expected.find(tensor.name);
    if (planned == expected.end()) {
      throw_error(
          ErrorCode::kCorruptData, where,
          "the tensor has no place in this architecture, expected only those of config.json");
    }
    const PlannedTensor& plan = *planned->second;
    if (!plan.allows(tensor.dtype)) {
      throw_error(ErrorCode::kCorruptData, where, "element type {}, expected {}",
                  to_string(tensor.dtype), allowed_types(plan));
    }
    if (tensor.shape != plan.shape) {
      throw_error(ErrorCode::kCorruptData, where, "shape {}, expected {}", shape_text(tensor.shape),
                  shape_text(plan.shape));
    }
    expected.erase(planned);
    model.weights.emplace(tensor.name, tensor);
  }
  model.files.push_back(std::move(file).release());
}

// Names the first missing tensor in the order of the plan.
void check_complete(const std::vector<PlannedTensor>& plan, const Expected& expected,
                    const std::string& where) {
  for (const PlannedTensor& tensor : plan) {
    const auto missing = expected.find(tensor.name);
    if (missing == expected.end() || missing->second != &tensor) continue;
    throw_error(ErrorCode::kCorruptData, where, "{} is missing, expected {} of shape {}{}",
                tensor.name, allowed_types(tensor), shape_text(tensor.shape),
                expected.size() > 1 ? fmt::format(" (and {} more)", expected.size() - 1) : "");
  }
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

Model open_checkpoint(const fs::path& directory) {
  Model model{open_model_files(directory), {}, {}};
  const std::vector<PlannedTensor> plan = plan_tensors(model.config);

  Expected backbone = expected_of(plan, TensorFile::kBackbone);
  for (SafetensorsFile& shard : open_sharded_safetensors(directory)) {
    take_file(std::move(shard), backbone, model);
  }
  check_complete(plan, backbone, directory.string());
  const fs::path head_path = directory / kHeadWeightsFile;
  Expected head = expected_of(plan, TensorFile::kJointHead);
  take_file(SafetensorsFile(head_path), head, model);
  check_complete(plan, head, head_path.string());

  if (model.config.text.tie_word_embeddings) {
    Weight table = model.weight("model.language_model.embed_tokens.weight");
    model.weights.emplace("lm_head.weight", std::move(table));
  }
  return model;
}

}  // namespace clefkit
