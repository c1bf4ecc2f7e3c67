#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "clefkit/model/config.h"
#include "clefkit/safetensors/dtype.h"

namespace clefkit {

enum class TensorClass {
  kTextLinear,  // Weight matrices [out, in] of the text layers.
  kTextOther,   // Their norms, convolutions, A_log and dt_bias.
  kEmbedding,   // embed_tokens, lm_head, the final norm.
  kVision,
  kHead,
};

// Where a checkpoint keeps a tensor.
enum class TensorFile { kBackbone, kJointHead };

// A tensor that the architecture needs.
struct PlannedTensor {
  std::string name;  // The release's name; the joint head's have no prefix.
  std::vector<std::size_t> shape;
  TensorClass tensor_class = TensorClass::kTextLinear;
  TensorFile file = TensorFile::kBackbone;
  // BF16 always; F32 too for norms, A_log and dt_bias, as other Qwen3.5 releases store them.
  bool allows_float32 = false;

  bool allows(DType dtype) const {
    return dtype == DType::kBF16 || (allows_float32 && dtype == DType::kF32);
  }
  std::size_t element_count() const;
};

// Every tensor of a checkpoint with this configuration (model.md 1.2), in natural order of the
// names, the backbone's before the joint head's. With tied embeddings there is no lm_head.
std::vector<PlannedTensor> plan_tensors(const ModelConfig& config);

// "model.language_model.layers.7."
std::string text_layer_prefix(std::size_t layer);
// "model.visual.blocks.7."
std::string vision_block_prefix(std::size_t block);

}  // namespace clefkit
