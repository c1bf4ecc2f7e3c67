#include "clefkit/synth/synth.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/synth/checkpoint_files.h"
#include "clefkit/synth/random_weights.h"
#include "clefkit/synth/release_files.h"
#include "clefkit/synth/tokenizer_choice.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

// Small enough to share the work of a batch among many threads, large enough to be worth a task.
constexpr std::size_t kBlockElements = std::size_t{1} << 18;
// Two such batches are held: one is written while the next is made.
constexpr std::size_t kBatchElements = std::size_t{1} << 23;

// The directory while it is being written; removed unless it was published.
class PartialDirectory {
 public:
  explicit PartialDirectory(const fs::path& target)
      : target_(without_slash(target)), path_(target_.string() + ".partial") {
    std::error_code unreadable;
    if (fs::exists(target_, unreadable) &&
        !(fs::is_directory(target_, unreadable) && fs::is_empty(target_, unreadable))) {
      throw Error(ErrorCode::kInvalidArgument, target_.string(),
                  "is there already, expected a new or an empty directory");
    }
    // Left behind by a run that was killed; nothing in it can be used.
    attempt("remove", [&](std::error_code& error) { fs::remove_all(path_, error); });
    attempt("create", [&](std::error_code& error) { fs::create_directories(path_, error); });
  }
  ~PartialDirectory() {
    std::error_code ignored;
    if (!published_) fs::remove_all(path_, ignored);
  }
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;

  const fs::path& path() const { return path_; }

  void require_space(std::uint64_t bytes) const {
    std::error_code unreadable;
    const fs::space_info space = fs::space(path_, unreadable);
    if (!unreadable && space.available < bytes) {
      throw_error(ErrorCode::kUnavailable, target_.string(),
                  "the disk has room for {} bytes, expected {}", space.available, bytes);
    }
  }

  void publish() {
    attempt("rename", [&](std::error_code& error) { fs::rename(path_, target_, error); });
    published_ = true;
  }

 private:
  static fs::path without_slash(const fs::path& path) {
    return path.has_filename() ? path : path.parent_path();
  }
  template <typename Action>
  void attempt(const char* doing, Action action) const {
    std::error_code error;
    action(error);
    if (error) {
      throw_error(ErrorCode::kUnavailable, path_.string(), "cannot {} the directory: {}", doing,
                  error.message());
    }
  }

  fs::path target_;
  fs::path path_;
  bool published_ = false;
};

// A run of elements of one tensor, and its place in the batch that is being made.
struct Block {
  const TensorInfo* tensor = nullptr;
  const QuantileTable* table = nullptr;
  std::uint64_t index = 0;  // Among the tensor's blocks.
  std::size_t offset = 0;   // In elements of the batch.
  std::size_t elements = 0;
};

// Makes and writes the weights of files one after the other.
class WeightStream {
 public:
  WeightStream(const ComputeContext& context, const SynthOptions& options,
               const ModelConfig& config, std::uint64_t total_bytes)
      : context_(context), options_(options), config_(config), total_bytes_(total_bytes) {
    report(0);
  }

  void write_file(const fs::path& path, const SafetensorsLayout& layout) {
    SafetensorsWriter writer(path, layout.tensors);
    std::vector<Block> batch;
    std::size_t batch_elements = 0;
    for (const TensorInfo& tensor : layout.tensors) {
      const QuantileTable& table = table_of(tensor);
      const std::size_t elements = tensor.byte_count() / sizeof(BFloat16);
      for (std::size_t first = 0; first < elements; first += kBlockElements) {
        const std::size_t count = std::min(kBlockElements, elements - first);
        if (batch_elements + count > kBatchElements) {
          make_batch(writer, std::exchange(batch, {}), std::exchange(batch_elements, 0));
        }
        batch.push_back({&tensor, &table, first / kBlockElements, batch_elements, count});
        batch_elements += count;
      }
    }
    make_batch(writer, batch, batch_elements);
    make_batch(writer, {}, 0);
    writer.commit();
    report(layout.head.size());
  }

 private:
  // Fills the next batch while the one before goes to the disk.
  void make_batch(SafetensorsWriter& writer, const std::vector<Block>& blocks,
                  std::size_t elements) {
    next_.resize(elements);
    context_.parallel_for(blocks.size() + 1, [&](std::size_t task, std::size_t) {
      if (task == 0) {
        writer.write({reinterpret_cast<const std::uint8_t*>(ready_.data()),
                      ready_.size() * sizeof(BFloat16)});
        return;
      }
      const Block& block = blocks[task - 1];
      fill_block(*block.table, options_.seed, block.tensor->name, block.index,
                 std::span(next_).subspan(block.offset, block.elements));
    });
    report(ready_.size() * sizeof(BFloat16));
    std::swap(ready_, next_);
  }

  // Tensors of one shape and role share a table, so a large model needs a dozen.
  const QuantileTable& table_of(const TensorInfo& tensor) {
    const Distribution distribution = distribution_of(tensor, config_);
    const auto found = tables_.find(distribution);
    if (found != tables_.end()) return found->second;
    return tables_.emplace(distribution, QuantileTable(distribution)).first->second;
  }

  void report(std::uint64_t bytes) {
    done_bytes_ += bytes;
    if (options_.progress) options_.progress(done_bytes_, total_bytes_);
  }

  const ComputeContext& context_;
  const SynthOptions& options_;
  const ModelConfig& config_;
  std::map<Distribution, QuantileTable> tables_;
  std::vector<BFloat16> ready_;  // Made, not yet written.
  std::vector<BFloat16> next_;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

// The head's text, for the width that config.json names.
std::string head_config_of(const ConfigTexts& texts) {
  if (!texts.head_config_json.empty()) return texts.head_config_json;
  const Json json = parse_json(texts.config_json, kConfigFile, {});
  const Json* const text = json.find("text_config");
  const Json* const width = text == nullptr ? nullptr : text->find("hidden_size");
  // A config.json without a width is refused, with its reason, by parse_model_config.
  return default_head_config_json(width == nullptr ? 1 : width->as_uint64().value_or(1));
}

std::optional<std::uint64_t> end_of_text_token(const std::string& config_json) {
  const Json json = parse_json(config_json, kConfigFile, {});
  const Json* const token = json.find("text_config")->find("eos_token_id");
  return token == nullptr ? std::nullopt : token->as_uint64();
}

}  // namespace

void write_synthetic_checkpoint(const ComputeContext& context, const SynthOptions& options) {
  const std::string head_config = head_config_of(options.config);
  const ModelConfig config = parse_model_config(options.config.config_json, head_config);
  const std::string tokenizer = choose_tokenizer(config, options.tokenizer);
  const CheckpointFiles files = plan_checkpoint_files(config, options.shard_bytes);

  PartialDirectory directory(options.output);
  directory.require_space(files.total_bytes());
  const auto write_text = [&](const char* name, const std::string& text) {
    write_file(directory.path() / name, text);
  };
  write_text(kConfigFile, options.config.config_json);
  write_text(kHeadConfigFile, head_config);
  write_text("generation_config.json",
             generation_config_json(end_of_text_token(options.config.config_json)));
  if (config.has_vision()) write_text(kProcessorConfigFile, processor_config_json(config.vision));
  write_text(kTokenizerConfigFile, tokenizer_config_json());
  write_text(kTokenizerFile, tokenizer);
  if (!files.index_json.empty()) write_text("model.safetensors.index.json", files.index_json);

  WeightStream stream(context, options, config, files.total_bytes());
  for (const WeightFile& file : files.weight_files) {
    stream.write_file(directory.path() / file.name, file.layout);
  }
  directory.publish();
}

}  // namespace clefkit
