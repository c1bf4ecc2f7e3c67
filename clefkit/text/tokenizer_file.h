#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/text/added_tokens.h"
#include "clefkit/text/byte_pair_encoder.h"
#include "clefkit/text/vocabulary.h"

namespace clefkit {

// What a tokenizer.json says, checked: it is the pipeline this folder implements, and its parts
// fit together.
struct TokenizerFile {
  std::string pattern;    // Of the pre-tokenizer.
  Vocabulary vocabulary;  // Base and added tokens; ids from 0 without gaps.
  std::array<std::int32_t, 256> byte_tokens{};
  std::vector<BytePairEncoder::Merge> merges;
  std::vector<AddedToken> added_tokens;
};

// Reads the format of the Rust tokenizers library: normalizer NFC, pre_tokenizer Split (Isolated)
// then ByteLevel, model BPE without options. Throws Error with `where`, the key, what was found
// and what was expected: kUnsupported for another pipeline, kCorruptData for anything else.
TokenizerFile read_tokenizer_file(std::string_view json, const std::string& where);

}  // namespace clefkit
