#include "clefkit/synth/tokenizer_choice.h"

#include <array>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/synth/byte_tokenizer.h"

namespace clefkit {
namespace {

constexpr std::size_t kTokenizerLimit = std::size_t{256} << 20;

using MediaToken = std::pair<std::string_view, std::int32_t>;

std::array<MediaToken, 4> media_tokens(const ModelConfig& config) {
  return {{{"<|vision_start|>", config.vision_start_token_id},
           {"<|vision_end|>", config.vision_end_token_id},
           {"<|image_pad|>", config.image_token_id},
           {"<|video_pad|>", config.video_token_id}}};
}

std::string fitting_byte_tokenizer(const ModelConfig& config) {
  std::size_t first_added = kByteTokens;
  bool fits = true;
  if (config.has_vision()) {
    const auto start = static_cast<std::size_t>(config.vision_start_token_id);
    const std::size_t offset = added_token_index("<|vision_start|>");
    fits = start >= kByteTokens + offset;
    first_added = fits ? start - offset : kByteTokens;
    for (const auto& [content, id] : media_tokens(config)) {
      fits = fits && static_cast<std::size_t>(id) == first_added + added_token_index(content);
    }
  }
  if (!fits || first_added + kAddedTokens > config.text.vocab_size) {
    throw_error(ErrorCode::kInvalidArgument, "tokenizer",
                "none given, and the ids of config.json leave no place for {} bytes and {} added "
                "tokens in the release's order, expected a file",
                kByteTokens, kAddedTokens);
  }
  return byte_tokenizer_json(first_added);
}

void check_id(const ModelConfig& config, const std::string& where, std::string_view token,
              const Json& id) {
  const auto number = id.as_uint64();
  if (!number || *number >= config.text.vocab_size) {
    throw_error(ErrorCode::kInvalidArgument, where,
                "id {} of `{}`, expected ids under {}, the vocab_size", to_string(id), token,
                config.text.vocab_size);
  }
}

void check_media_token(const ModelConfig& config, const std::string& where,
                       const std::string& content, const Json& id) {
  for (const auto& [media, expected] : media_tokens(config)) {
    if (media == content && id.as_int64() != expected) {
      throw_error(ErrorCode::kInvalidArgument, where,
                  "id {} of `{}`, expected {} as in config.json", to_string(id), content, expected);
    }
  }
}

void check_fits(const ModelConfig& config, const std::string& text, const std::string& where) {
  const Json tokenizer =
      parse_json(text, where, {.bytes = kTokenizerLimit, .error = ErrorCode::kInvalidArgument});
  const Json* const model = tokenizer.find("model");
  const Json* const vocabulary = model == nullptr ? nullptr : model->find("vocab");
  const Json* const added = tokenizer.find("added_tokens");
  if (vocabulary == nullptr || !vocabulary->is_object() || added == nullptr || !added->is_array()) {
    throw Error(
        ErrorCode::kInvalidArgument, where,
        "has no object `model.vocab` or no array `added_tokens`, expected a tokenizer.json");
  }
  for (const auto& [token, id] : vocabulary->members()) check_id(config, where, token, id);
  for (const Json& token : added->items()) {
    const Json* const id = token.find("id");
    const Json* const content = token.find("content");
    if (id == nullptr || content == nullptr || !content->is_string()) {
      throw Error(ErrorCode::kInvalidArgument, where, "has an added token without id or content");
    }
    check_id(config, where, content->string(), *id);
    if (config.has_vision()) check_media_token(config, where, content->string(), *id);
  }
}

}  // namespace

std::string choose_tokenizer(const ModelConfig& config, const std::filesystem::path& path) {
  if (path.empty()) return fitting_byte_tokenizer(config);
  std::string text = read_file(path, kTokenizerLimit);
  check_fits(config, text, path.string());
  return text;
}

}  // namespace clefkit
