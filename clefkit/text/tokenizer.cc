#include "clefkit/text/tokenizer.h"

#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/utf8.h"
#include "clefkit/text/added_tokens.h"
#include "clefkit/text/byte_pair_encoder.h"
#include "clefkit/text/nfc.h"
#include "clefkit/text/pattern_splitter.h"
#include "clefkit/text/tokenizer_file.h"
#include "clefkit/text/vocabulary.h"

namespace clefkit {
namespace {

// BytePairEncoder's positions have 32 bits, and normalisation can make text up to three times as
// long.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 29;

constexpr std::string_view kPatternA =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kPatternB =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+)"
    R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string_view pattern_of(Pretokenizer pretokenizer, std::string_view in_file) {
  switch (pretokenizer) {
    case Pretokenizer::kPatternA:
      return kPatternA;
    case Pretokenizer::kPatternB:
      return kPatternB;
    case Pretokenizer::kFile:
      break;
  }
  return in_file;
}

}  // namespace

struct Tokenizer::Stages {
  Stages(TokenizerFile file, const std::string& where, Pretokenizer pretokenizer)
      : added_tokens(std::move(file.added_tokens)),
        splitter(pattern_of(pretokenizer, file.pattern), where + ": pre_tokenizer"),
        encoder(file.byte_tokens, file.merges),
        vocabulary(std::move(file.vocabulary)) {}

  AddedTokens added_tokens;
  PatternSplitter splitter;
  BytePairEncoder encoder;
  Vocabulary vocabulary;
};

Tokenizer::Tokenizer(std::string_view json, const std::string& where, Pretokenizer pretokenizer)
    : stages_(
          std::make_unique<const Stages>(read_tokenizer_file(json, where), where, pretokenizer)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8,
                                            const CancelToken* cancel) const {
  if (utf8.size() >= kMaxTextBytes) {
    throw_error(ErrorCode::kInvalidArgument, "text", "{} bytes, expected fewer than {}",
                utf8.size(), kMaxTextBytes);
  }
  const std::size_t valid = utf8_valid_prefix(utf8);
  if (valid != utf8.size()) {
    throw_error(ErrorCode::kInvalidArgument, "text",
                "found 0x{:02x} at byte {}, expected valid UTF-8",
                static_cast<unsigned char>(utf8[valid]), valid);
  }
  std::vector<std::int32_t> ids;
  std::size_t at = 0;
  while (const auto added = stages_->added_tokens.find(utf8, at)) {
    encode_plain(utf8.substr(at, added->begin - at), cancel, ids);
    ids.push_back(added->id);
    at = added->end;
  }
  encode_plain(utf8.substr(at), cancel, ids);
  return ids;
}

void Tokenizer::encode_plain(std::string_view utf8, const CancelToken* cancel,
                             std::vector<std::int32_t>& ids) const {
  if (utf8.empty()) return;
  const std::string text = to_nfc(utf8);
  std::size_t begin = 0;
  for (const std::size_t end : stages_->splitter.piece_ends(text, cancel)) {
    if (cancel != nullptr) cancel->throw_if_cancelled();
    stages_->encoder.encode(std::string_view(text).substr(begin, end - begin), ids);
    begin = end;
  }
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string out;
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary_size()) {
      throw_error(ErrorCode::kInvalidArgument, "ids", "found {}, expected 0 to {}", id,
                  vocabulary_size() - 1);
    }
    out += stages_->vocabulary.bytes(id);
  }
  return out;
}

std::optional<std::int32_t> Tokenizer::token_id(std::string_view added_token_text) const {
  return stages_->added_tokens.id_of(added_token_text);
}

std::size_t Tokenizer::vocabulary_size() const { return stages_->vocabulary.size(); }

}  // namespace clefkit
