#pragma once

#include <filesystem>
#include <string>

#include "clefkit/model/config.h"

namespace clefkit {

// The tokenizer.json of a synthetic checkpoint. With a path, that file, once it is sure that every
// id has a row in the embeddings and the media tokens have the ids the configuration gives them.
// Without, byte_tokenizer_json() placed where the configuration expects its added tokens. Throws
// Error(kInvalidArgument) when there is no such place or the file does not fit.
std::string choose_tokenizer(const ModelConfig& config, const std::filesystem::path& path);

}  // namespace clefkit
