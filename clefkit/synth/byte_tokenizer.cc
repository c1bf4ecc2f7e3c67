#include "clefkit/synth/byte_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/base/utf8.h"

namespace clefkit {
namespace {

struct AddedToken {
  std::string_view content;
  bool special = true;
};

// By id, model.md 9.1.
constexpr std::array<AddedToken, kAddedTokens> kAdded{{
    {"<|endoftext|>"},
    {"<|im_start|>"},
    {"<|im_end|>"},
    {"<|object_ref_start|>"},
    {"<|object_ref_end|>"},
    {"<|box_start|>"},
    {"<|box_end|>"},
    {"<|quad_start|>"},
    {"<|quad_end|>"},
    {"<|vision_start|>"},
    {"<|vision_end|>"},
    {"<|vision_pad|>"},
    {"<|image_pad|>"},
    {"<|video_pad|>"},
    {"<tool_call>", false},
    {"</tool_call>", false},
    {"<|fim_prefix|>", false},
    {"<|fim_middle|>", false},
    {"<|fim_suffix|>", false},
    {"<|fim_pad|>", false},
    {"<|repo_name|>", false},
    {"<|file_sep|>", false},
    {"<tool_response>", false},
    {"</tool_response>", false},
    {"<think>", false},
    {"</think>", false},
    {"<|audio_start|>"},
    {"<|audio_end|>"},
    {"<tts_pad>"},
    {"<tts_text_bos>"},
    {"<tts_text_eod>"},
    {"<tts_text_bos_single>"},
    {"<|audio_pad|>"},
}};

// Pattern A of model.md 9.2, the one in the release's tokenizer.json.
constexpr char kPattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The characters that stand for the 256 bytes, in the order of GPT-2's vocabulary: printable
// Latin-1 as itself, then the others from U+0100 up.
std::vector<std::string> byte_characters() {
  std::vector<std::string> printable;
  std::vector<std::string> others;
  for (std::uint32_t byte = 0; byte < kByteTokens; ++byte) {
    const bool as_itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    std::string character;
    append_utf8(character, as_itself ? byte : 0x100 + static_cast<std::uint32_t>(others.size()));
    (as_itself ? printable : others).push_back(character);
  }
  printable.insert(printable.end(), others.begin(), others.end());
  return printable;
}

Json added_tokens_json(std::size_t first_added) {
  Json tokens = Json::array();
  for (std::size_t index = 0; index < kAdded.size(); ++index) {
    tokens.push_back(Json::object({{"id", static_cast<std::uint64_t>(first_added + index)},
                                   {"content", kAdded[index].content},
                                   {"single_word", false},
                                   {"lstrip", false},
                                   {"rstrip", false},
                                   {"normalized", false},
                                   {"special", kAdded[index].special}}));
  }
  return tokens;
}

Json vocabulary_json(std::size_t size) {
  Json::Object vocabulary;
  vocabulary.reserve(size);
  for (const std::string& character : byte_characters()) {
    vocabulary.emplace_back(character, static_cast<std::uint64_t>(vocabulary.size()));
  }
  while (vocabulary.size() < size) {
    vocabulary.emplace_back(fmt::format("<unused_{}>", vocabulary.size()),
                            static_cast<std::uint64_t>(vocabulary.size()));
  }
  return vocabulary;
}

Json byte_level_json(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return Json::object({{"type", "ByteLevel"},
                       {"add_prefix_space", add_prefix_space},
                       {"trim_offsets", trim_offsets},
                       {"use_regex", use_regex}});
}

}  // namespace

std::size_t added_token_index(std::string_view content) {
  const auto found = std::find_if(kAdded.begin(), kAdded.end(), [&](const AddedToken& token) {
    return token.content == content;
  });
  assert(found != kAdded.end());
  return static_cast<std::size_t>(found - kAdded.begin());
}

std::string byte_tokenizer_json(std::size_t first_added) {
  assert(first_added >= kByteTokens);
  const Json split = Json::object({{"type", "Split"},
                                   {"pattern", Json::object({{"Regex", kPattern}})},
                                   {"behavior", "Isolated"},
                                   {"invert", false}});
  const Json pre_tokenizer =
      Json::object({{"type", "Sequence"},
                    {"pretokenizers", Json::array({split, byte_level_json(false, true, false)})}});
  const Json model = Json::object({{"type", "BPE"},
                                   {"dropout", nullptr},
                                   {"unk_token", nullptr},
                                   {"continuing_subword_prefix", ""},
                                   {"end_of_word_suffix", ""},
                                   {"fuse_unk", false},
                                   {"byte_fallback", false},
                                   {"ignore_merges", false},
                                   {"vocab", vocabulary_json(first_added)},
                                   {"merges", Json::array()}});
  return to_pretty_string(Json::object({{"version", "1.0"},
                                        {"truncation", nullptr},
                                        {"padding", nullptr},
                                        {"added_tokens", added_tokens_json(first_added)},
                                        {"normalizer", Json::object({{"type", "NFC"}})},
                                        {"pre_tokenizer", pre_tokenizer},
                                        {"post_processor", byte_level_json(false, false, false)},
                                        {"decoder", byte_level_json(true, true, true)},
                                        {"model", model}}));
}

}  // namespace clefkit
