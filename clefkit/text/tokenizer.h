#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit {

class CancelToken;

// How text is cut into pieces before byte-pair encoding. The release's files disagree: A is in
// its tokenizer.json and what it was trained with, B in its tokenizer_config.json and what newer
// readers use. They differ where a combining mark survives normalisation.
enum class Pretokenizer {
  kFile,      // The pattern in the tokenizer.json.
  kPatternA,  // Letters without combining marks.
  kPatternB,  // Letters with combining marks.
};

// The byte-level BPE tokenizer of a tokenizer.json: text to ids exactly as the Rust tokenizers
// library makes them. Added tokens (`<|im_end|>`) are found in the raw text; between them the text
// is NFC-normalised, split by the pre-tokenizer's pattern, and merged by rank.
// All functions may be called from several threads at once. Movable.
class Tokenizer {
 public:
  // `json` is the text of a tokenizer.json, `where` names it in errors. Throws Error:
  // kUnsupported when the file describes another pipeline, kCorruptData when it is damaged.
  Tokenizer(std::string_view json, const std::string& where,
            Pretokenizer pretokenizer = Pretokenizer::kFile);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // The ids of a text, without beginning and end tokens. Time grows as n log n with the length,
  // also for a text that is one piece. Throws Error(kInvalidArgument) when the text is not valid
  // UTF-8 (naming the byte offset) or has 2^29 bytes or more, and Error(kCancelled).
  std::vector<std::int32_t> encode(std::string_view utf8,
                                   const CancelToken* cancel = nullptr) const;

  // The bytes the ids stand for; of encode()'s ids, the normalised text. Ids of which a character's
  // bytes are incomplete give bytes that are not UTF-8. Throws Error(kInvalidArgument) for an id
  // outside [0, vocabulary_size()).
  std::string decode(std::span<const std::int32_t> ids) const;

  // The id of an added token such as `<|image_pad|>`.
  std::optional<std::int32_t> token_id(std::string_view added_token_text) const;

  // Highest id + 1, added tokens included.
  std::size_t vocabulary_size() const;

 private:
  struct Stages;
  void encode_plain(std::string_view utf8, const CancelToken* cancel,
                    std::vector<std::int32_t>& ids) const;

  std::unique_ptr<const Stages> stages_;
};

}  // namespace clefkit
