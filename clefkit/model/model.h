#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "clefkit/base/mapped_file.h"
#include "clefkit/model/blob_weight.h"
#include "clefkit/model/config.h"
#include "clefkit/model/program_record.h"
#include "clefkit/model/text_scales.h"
#include "clefkit/quant/lut6_matrix.h"
#include "clefkit/safetensors/tensor_view.h"

namespace clefkit {

// The JSON files of a model directory: all that encoding and tokenizing need.
struct ModelFiles {
  std::string name;  // Last component of the directory.
  std::filesystem::path directory;
  ModelConfig config;
  std::string tokenizer_json;
  std::string tokenizer_config_json;  // Empty when absent.
  std::string processor_config_json;  // Empty when absent, which only a model without vision may.
};

// A weight as a file holds it: dense, or a linear layer palettized to 6 bits.
using Weight = std::variant<TensorView, Lut6Matrix>;

// An opened checkpoint or bundle. Owns the mapped files that its weights view, and nothing it
// points to moves with it, so it can be moved while views are in use.
struct Model : ModelFiles {
  // By the release's names, the joint head's without prefix. With tied embeddings
  // `lm_head.weight` is there too and views the bytes of embed_tokens.
  std::unordered_map<std::string, Weight> weights;
  std::vector<MappedFile> files;
  // The programs that a bundle holds, of the plan that it was converted with; else none.
  std::vector<ProgramRecord> programs;
  // Where a bundle's text weights lie, so that its programs can be written anew; else none.
  std::vector<BlobWeight> blob_weights;
  // Those of a bundle's programs, whether it holds them or they are yet to be made; of a
  // checkpoint's there are none.
  MlpFactors mlp_factors{};
  // Whether `fast` has been measured to be accurate enough for a bundle (fast_precision.h).
  bool is_fast_accurate = false;

  // Throws Error(kNotFound) when there is none.
  const Weight& weight(const std::string& tensor_name) const;
  // The same for a weight that is never palettized; Error(kCorruptData) when it is.
  const TensorView& tensor(const std::string& tensor_name) const;
};

}  // namespace clefkit
