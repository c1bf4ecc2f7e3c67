#pragma once

#include <filesystem>

#include "clefkit/model/model.h"
#include "clefkit/model/tensor_checklist.h"
#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit {

// Names of a checkpoint's files.
inline constexpr char kConfigFile[] = "config.json";
inline constexpr char kHeadConfigFile[] = "joint_head_config.json";
inline constexpr char kTokenizerFile[] = "tokenizer.json";
inline constexpr char kTokenizerConfigFile[] = "tokenizer_config.json";
inline constexpr char kProcessorConfigFile[] = "processor_config.json";
inline constexpr char kHeadWeightsFile[] = "joint_head.safetensors";
// Of ours, in checkpoints that were trained for some skills: what eval counts them by.
inline constexpr char kSkillsFile[] = "skills.json";

// Reads the configuration and keeps the texts of the other JSON files, for their own parsers.
// Throws Error: kNotFound for an absent file, else as parse_model_config does.
ModelFiles open_model_files(const std::filesystem::path& directory);

// Maps a checkpoint in the release's layout and proves that it holds exactly the tensors its
// configuration calls for (`mtp.*` apart, which other Qwen3.5 releases carry); reads no weights.
// Throws Error: kNotFound for an absent file, kCorruptData or kUnsupported with file and tensor.
Model open_checkpoint(const std::filesystem::path& directory);

// Moves a file's tensors into the model, and the file with them, ticking them off the list;
// `mtp.*` are passed over. Throws Error(kCorruptData) with file and tensor.
void add_tensors(SafetensorsFile file, TensorChecklist& checklist, Model& model);

// With tied embeddings, adds `lm_head.weight` as a view of embed_tokens' bytes.
void tie_embeddings(Model& model);

}  // namespace clefkit
