#include "clefkit/text/tokenizer_file.h"

#include <cstddef>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"
#include "clefkit/base/utf8.h"
#include "clefkit/text/byte_alphabet.h"

namespace clefkit {
namespace {

// An added token is compared at every place its first bytes stand in the text.
constexpr std::size_t kMaxAddedTokenBytes = 1024;

// JSON for an error message, cut so that the message stays one sentence.
std::string shown(const Json& value) {
  constexpr std::size_t kMaxBytes = 60;
  if (value.is_array() || value.is_object()) return std::string(value.kind_name());
  std::string text = value.is_string() ? value.string() : to_string(value);
  if (text.size() > kMaxBytes) {
    std::size_t end = kMaxBytes;
    while ((text[end] & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "…";
  }
  return value.is_string() ? to_string(Json(text)) : text;
}

// A value of the file and where it stands, for messages.
class Node {
 public:
  Node(const Json* value, std::string path) : value_(value), path_(std::move(path)) {}

  bool is_null() const { return value_ == nullptr || value_->is_null(); }
  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  Node member(const char* key) const {
    if (value_ == nullptr || !value_->is_object()) refuse(ErrorCode::kCorruptData, "an object");
    return {value_->find(key), path_ + (path_.ends_with(' ') ? "" : ".") + key};
  }
  Node item(std::size_t index) const {
    return {&items()[index], fmt::format("{}[{}]", path_, index)};
  }

  const Json::Array& items() const {
    if (value_ == nullptr || !value_->is_array()) refuse(ErrorCode::kCorruptData, "an array");
    return value_->items();
  }
  const std::string& string() const {
    if (value_ == nullptr || !value_->is_string()) refuse(ErrorCode::kCorruptData, "a string");
    return value_->string();
  }

  // The value is another than the pipeline has.
  void expect(const Json& wanted) const {
    if (value_ != nullptr && *value_ == wanted) return;
    const bool is_another = value_ != nullptr && value_->kind_name() == wanted.kind_name();
    refuse(is_another ? ErrorCode::kUnsupported : ErrorCode::kCorruptData, shown(wanted));
  }
  void expect_null_or(const Json& wanted) const {
    if (!is_null()) expect(wanted);
  }

  [[noreturn]] void refuse(ErrorCode code, std::string_view expected) const {
    throw_error(code, path_, "found {}, expected {}",
                value_ == nullptr ? "nothing" : shown(*value_), expected);
  }
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_error(ErrorCode::kCorruptData, path_, format, std::forward<Args>(args)...);
  }

 private:
  const Json* value_;  // nullptr: the key is absent.
  std::string path_;
};

// The pattern, after checking that every stage is the one this library runs.
std::string read_pipeline(const Node& root) {
  root.member("truncation").expect_null_or(Json());
  root.member("padding").expect_null_or(Json());
  root.member("normalizer").member("type").expect("NFC");

  const Node pre_tokenizer = root.member("pre_tokenizer");
  pre_tokenizer.member("type").expect("Sequence");
  const Node stages = pre_tokenizer.member("pretokenizers");
  if (stages.items().size() != 2) {
    throw_error(ErrorCode::kUnsupported, stages.path(),
                "found {} stages, expected Split and ByteLevel", stages.items().size());
  }
  stages.item(0).member("type").expect("Split");
  stages.item(0).member("behavior").expect("Isolated");
  stages.item(0).member("invert").expect(false);
  stages.item(1).member("type").expect("ByteLevel");
  stages.item(1).member("add_prefix_space").expect(false);
  stages.item(1).member("use_regex").expect(false);
  // Only templates add tokens; ByteLevel adjusts offsets, which nothing here asks for.
  if (!root.member("post_processor").is_null())
    root.member("post_processor").member("type").expect("ByteLevel");
  root.member("decoder").member("type").expect("ByteLevel");

  const Node model = root.member("model");
  model.member("type").expect("BPE");
  model.member("dropout").expect_null_or(Json());
  model.member("unk_token").expect_null_or(Json());
  model.member("continuing_subword_prefix").expect_null_or("");
  model.member("end_of_word_suffix").expect_null_or("");
  model.member("byte_fallback").expect_null_or(false);
  model.member("ignore_merges").expect_null_or(false);
  return stages.item(0).member("pattern").member("Regex").string();
}

std::vector<AddedToken> read_added_tokens(const Node& list) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  std::unordered_set<std::string_view> texts;
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const Node entry = list.item(i);
    for (const char* option : {"single_word", "lstrip", "rstrip", "normalized"}) {
      entry.member(option).expect(false);
    }
    const std::string& text = entry.member("content").string();
    if (text.empty() || text.size() > kMaxAddedTokenBytes) {
      entry.member("content").fail("{} bytes, expected 1 to {}", text.size(), kMaxAddedTokenBytes);
    }
    if (!texts.insert(text).second) {
      entry.member("content").fail("{} is added twice", shown(entry.member("content").value()));
    }
    const std::optional<std::int64_t> id =
        entry.member("id").is_null() ? std::nullopt : entry.member("id").value().as_int64();
    // The exact range is known, and checked, once all tokens are.
    if (!id || *id < 0 || *id > INT32_MAX)
      entry.member("id").refuse(ErrorCode::kCorruptData, "an id");
    tokens.push_back({static_cast<std::int32_t>(*id), text});
  }
  return tokens;
}

// Places each token at its id, so that every id from 0 to the count is taken once.
class IdTable {
 public:
  explicit IdTable(std::size_t tokens) : entries_(tokens) {}

  enum class Kind : std::uint8_t { kNone, kBase, kAdded, kBoth };
  struct Entry {
    std::string_view text;
    Kind kind = Kind::kNone;
  };

  void place(std::int64_t id, Entry entry, const Node& where) {
    if (id < 0 || static_cast<std::uint64_t>(id) >= entries_.size()) {
      where.fail("the id {} of {}, expected ids from 0 to {} without gaps", id,
                 shown(Json(entry.text)), entries_.size() - 1);
    }
    Entry& taken = entries_[static_cast<std::size_t>(id)];
    if (taken.kind != Kind::kNone) {
      where.fail("the id {} belongs to {} and to {}", id, shown(Json(taken.text)),
                 shown(Json(entry.text)));
    }
    taken = entry;
  }

  // Some files list an added token in the vocabulary too. False when this is no such case.
  bool mark_as_both(std::int64_t id, std::string_view text) {
    if (id < 0 || static_cast<std::uint64_t>(id) >= entries_.size()) return false;
    Entry& entry = entries_[static_cast<std::size_t>(id)];
    if (entry.kind != Kind::kAdded || entry.text != text) return false;
    entry.kind = Kind::kBoth;
    return true;
  }

  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

Vocabulary read_vocabulary(const Node& vocab, const std::vector<AddedToken>& added,
                           const Node& added_node) {
  if (vocab.is_null() || !vocab.value().is_object()) {
    vocab.refuse(ErrorCode::kCorruptData, "an object");
  }
  const Json::Object& members = vocab.value().members();
  std::unordered_set<std::string_view> added_texts;
  for (const AddedToken& token : added) added_texts.insert(token.text);
  std::size_t in_both = 0;
  for (const auto& [text, id] : members) in_both += added_texts.contains(text) ? 1 : 0;

  IdTable table(members.size() + added.size() - in_both);
  for (std::size_t i = 0; i < added.size(); ++i) {
    table.place(added[i].id, {added[i].text, IdTable::Kind::kAdded}, added_node.item(i));
  }
  for (const auto& [text, value] : members) {
    const std::optional<std::int64_t> id = value.as_int64();
    if (!id) vocab.fail("the id of {} is {}, expected an integer", shown(Json(text)), shown(value));
    if (!table.mark_as_both(*id, text)) table.place(*id, {text, IdTable::Kind::kBase}, vocab);
  }

  Vocabulary vocabulary(table.entries().size());
  std::string bytes;
  for (const IdTable::Entry& entry : table.entries()) {
    bytes.clear();
    const bool is_of_alphabet = append_bytes_of_alphabet(entry.text, bytes) && !bytes.empty();
    if (entry.kind == IdTable::Kind::kBase) {
      if (!is_of_alphabet) {
        vocab.fail("the token {}, expected characters of the byte-level alphabet",
                   shown(Json(entry.text)));
      }
      vocabulary.add(bytes, Vocabulary::Lookup::kByBytes);
    } else {
      const bool can_be_merged = entry.kind == IdTable::Kind::kBoth && bytes == entry.text;
      vocabulary.add(entry.text,
                     can_be_merged ? Vocabulary::Lookup::kByBytes : Vocabulary::Lookup::kByIdOnly);
    }
  }
  return vocabulary;
}

std::array<std::int32_t, 256> find_byte_tokens(const Vocabulary& vocabulary, const Node& vocab) {
  std::array<std::int32_t, 256> tokens{};
  for (std::size_t byte = 0; byte < tokens.size(); ++byte) {
    const char text = static_cast<char>(byte);
    const std::optional<std::int32_t> id = vocabulary.find({&text, 1});
    // Without it some text would vanish.
    if (!id) vocab.fail("no token for the byte 0x{:02x}, expected one for each of 256", byte);
    tokens[byte] = *id;
  }
  return tokens;
}

// A merge as two strings, or in the older form as one with a space between.
std::pair<std::string_view, std::string_view> read_pair(const Json& merge) {
  if (merge.is_array() && merge.items().size() == 2 && merge.items()[0].is_string() &&
      merge.items()[1].is_string()) {
    return {merge.items()[0].string(), merge.items()[1].string()};
  }
  if (!merge.is_string()) return {};
  const std::string_view text = merge.string();
  const std::size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) return {};
  return {text.substr(0, space), text.substr(space + 1)};
}

std::vector<BytePairEncoder::Merge> read_merges(const Node& list, const Vocabulary& vocabulary) {
  std::vector<BytePairEncoder::Merge> merges;
  merges.reserve(list.items().size());
  std::string bytes;
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const auto [left, right] = read_pair(list.items()[i]);
    if (left.empty() || right.empty()) {
      list.item(i).refuse(ErrorCode::kCorruptData, "two tokens");
    }
    bytes.clear();
    bool known = append_bytes_of_alphabet(left, bytes);
    const std::size_t left_size = bytes.size();
    known = known && append_bytes_of_alphabet(right, bytes);
    const std::string_view both = bytes;
    const auto find = [&, first = left, second = right](std::size_t begin, std::size_t end) {
      const std::optional<std::int32_t> id =
          known ? vocabulary.find(both.substr(begin, end - begin)) : std::nullopt;
      if (!id) {
        list.item(i).fail("merges {} and {}, expected both and their union in the vocabulary",
                          shown(Json(first)), shown(Json(second)));
      }
      return *id;
    };
    merges.push_back({.left = find(0, left_size),
                      .right = find(left_size, both.size()),
                      .result = find(0, both.size())});
  }
  return merges;
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view json, const std::string& where) {
  const Json document = parse_json(json, where, {});
  const Node root(&document, where + ": ");
  if (!document.is_object()) {
    throw_error(ErrorCode::kCorruptData, where, "found {}, expected an object",
                document.kind_name());
  }
  std::string pattern = read_pipeline(root);
  std::vector<AddedToken> added = read_added_tokens(root.member("added_tokens"));
  const Node vocab = root.member("model").member("vocab");
  Vocabulary vocabulary = read_vocabulary(vocab, added, root.member("added_tokens"));
  const std::array<std::int32_t, 256> byte_tokens = find_byte_tokens(vocabulary, vocab);
  std::vector<BytePairEncoder::Merge> merges =
      read_merges(root.member("model").member("merges"), vocabulary);
  return {std::move(pattern), std::move(vocabulary), byte_tokens, std::move(merges),
          std::move(added)};
}

}  // namespace clefkit
