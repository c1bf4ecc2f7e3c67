#include "clefkit/text/tokenizer_file.h"

#include <gmock/gmock.h>

#include <functional>

#include "clefkit/base/error.h"
#include "clefkit/base/json.h"
#include "clefkit/base/utf8.h"

namespace clefkit {
namespace {

using testing::HasSubstr;

// The character that stands for a byte, from the alphabet's definition.
std::string character_of(int byte) {
  int others = 0;
  for (int b = 0; b <= byte; ++b) {
    const bool is_visible =
        (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
    if (b == byte) {
      std::string out;
      append_utf8(out, static_cast<std::uint32_t>(is_visible ? b : 256 + others));
      return out;
    }
    others += is_visible ? 0 : 1;
  }
  return "";
}

// 256 bytes with their values as ids, "ab" 256, "abc" 257, and the added token "<s>" 258.
Json minimal() {
  Json file = parse_json(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 258, "content": "<s>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{L}+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "ignore_merges": false, "vocab": {}, "merges": [["a", "b"], "ab c"]}
  })",
                         "test", {});
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab.set(character_of(byte), byte);
  vocab.set("ab", 256).set("abc", 257);
  *const_cast<Json*>(file.find("model")->find("vocab")) = vocab;
  return file;
}

Json& at(Json& file, std::initializer_list<const char*> path) {
  const Json* value = &file;
  for (const char* key : path) value = value->find(key);
  return const_cast<Json&>(*value);
}

Error error_of_text(std::string_view text) {
  try {
    read_tokenizer_file(text, "t");
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "", "no error");
}

// The error after the value at `path` was replaced.
Error error_with(std::initializer_list<const char*> path, Json value) {
  Json file = minimal();
  at(file, path) = std::move(value);
  return error_of_text(to_string(file));
}

Error error_without(std::initializer_list<const char*> path, std::string_view key) {
  Json file = minimal();
  std::erase_if(at(file, path).members(),
                [key](const Json::Member& member) { return member.first == key; });
  return error_of_text(to_string(file));
}

Error error_after(const std::function<void(Json&)>& change) {
  Json file = minimal();
  change(file);
  return error_of_text(to_string(file));
}

TEST(TokenizerFile, ReadsVocabularyMergesAndAddedTokens) {
  const TokenizerFile file = read_tokenizer_file(to_string(minimal()), "t");
  EXPECT_EQ(file.pattern, R"(\p{L}+)");
  EXPECT_EQ(file.vocabulary.size(), 259u);
  EXPECT_EQ(file.vocabulary.bytes(32), " ");
  EXPECT_EQ(file.vocabulary.bytes(257), "abc");
  EXPECT_EQ(file.vocabulary.bytes(258), "<s>");
  EXPECT_EQ(file.vocabulary.find("<s>"), std::nullopt);
  EXPECT_EQ(file.byte_tokens[255], 255);
  ASSERT_EQ(file.merges.size(), 2u);
  EXPECT_EQ(file.merges[1].left, 256);
  EXPECT_EQ(file.merges[1].right, 'c');
  EXPECT_EQ(file.merges[1].result, 257);
  ASSERT_EQ(file.added_tokens.size(), 1u);
  EXPECT_EQ(file.added_tokens[0].text, "<s>");
}

TEST(TokenizerFile, AcceptsAnAddedTokenThatIsInTheVocabularyToo) {
  Json json = minimal();
  at(json, {"model", "vocab"}).set("<s>", 258);
  const TokenizerFile file = read_tokenizer_file(to_string(json), "t");
  EXPECT_EQ(file.vocabulary.size(), 259u);
  EXPECT_EQ(file.vocabulary.find("<s>"), 258);
}

TEST(TokenizerFile, AcceptsAFileWithoutOptionalKeys) {
  Json json = minimal();
  for (const char* key : {"version", "truncation", "padding", "added_tokens", "post_processor"}) {
    std::erase_if(json.members(), [key](const Json::Member& m) { return m.first == key; });
  }
  EXPECT_EQ(read_tokenizer_file(to_string(json), "t").vocabulary.size(), 258u);
}

TEST(TokenizerFile, RefusesOtherPipelinesNamingTheKey) {
  struct Change {
    std::initializer_list<const char*> path;
    Json value;
    const char* message;
  };
  const Change changes[] = {
      {{"normalizer"}, nullptr, "t: normalizer: found null, expected an object"},
      {{"normalizer", "type"}, "NFKC", "t: normalizer.type: found \"NFKC\", expected \"NFC\""},
      {{"truncation"}, Json::object(), "t: truncation: found an object, expected null"},
      {{"pre_tokenizer", "type"},
       "ByteLevel",
       "t: pre_tokenizer.type: found \"ByteLevel\", expected \"Sequence\""},
      {{"pre_tokenizer", "pretokenizers"},
       Json::array(),
       "t: pre_tokenizer.pretokenizers: found 0 stages, expected Split and ByteLevel"},
      {{"post_processor"},
       Json::object({{"type", "TemplateProcessing"}}),
       "t: post_processor.type: found \"TemplateProcessing\", expected \"ByteLevel\""},
      {{"decoder", "type"},
       "WordPiece",
       "t: decoder.type: found \"WordPiece\", expected \"ByteLevel\""},
      {{"model", "type"}, "Unigram", "t: model.type: found \"Unigram\", expected \"BPE\""},
      {{"model", "dropout"}, 0.1, "t: model.dropout: found 0.1, expected null"},
      {{"model", "unk_token"}, "<unk>", "t: model.unk_token: found \"<unk>\", expected null"},
      {{"model", "end_of_word_suffix"},
       "</w>",
       "t: model.end_of_word_suffix: found \"</w>\", expected \"\""},
      {{"model", "byte_fallback"}, true, "t: model.byte_fallback: found true, expected false"},
      {{"model", "ignore_merges"}, true, "t: model.ignore_merges: found true, expected false"},
  };
  for (const Change& change : changes) {
    EXPECT_STREQ(error_with(change.path, change.value).what(), change.message);
  }
  EXPECT_EQ(error_with({"model", "byte_fallback"}, true).code(), ErrorCode::kUnsupported);
}

TEST(TokenizerFile, RefusesOtherPretokenizerStages) {
  const auto with_stage = [](std::size_t stage, const char* key, const Json& value) {
    return error_after([&](Json& file) {
      at(at(file, {"pre_tokenizer", "pretokenizers"}).items()[stage], {key}) = value;
    });
  };
  EXPECT_STREQ(with_stage(0, "behavior", "Removed").what(),
               "t: pre_tokenizer.pretokenizers[0].behavior: found \"Removed\", expected "
               "\"Isolated\"");
  EXPECT_STREQ(with_stage(0, "invert", true).what(),
               "t: pre_tokenizer.pretokenizers[0].invert: found true, expected false");
  EXPECT_STREQ(with_stage(0, "pattern", Json::object({{"String", " "}})).what(),
               "t: pre_tokenizer.pretokenizers[0].pattern.Regex: found nothing, expected a string");
  EXPECT_STREQ(with_stage(1, "use_regex", true).what(),
               "t: pre_tokenizer.pretokenizers[1].use_regex: found true, expected false");
  EXPECT_STREQ(with_stage(1, "add_prefix_space", true).what(),
               "t: pre_tokenizer.pretokenizers[1].add_prefix_space: found true, expected false");
}

TEST(TokenizerFile, NamesMissingKeys) {
  EXPECT_STREQ(error_without({}, "model").what(), "t: model: found nothing, expected an object");
  EXPECT_STREQ(error_without({}, "normalizer").what(),
               "t: normalizer: found nothing, expected an object");
  EXPECT_STREQ(error_without({"model"}, "vocab").what(),
               "t: model.vocab: found nothing, expected an object");
  EXPECT_STREQ(error_without({"model"}, "merges").what(),
               "t: model.merges: found nothing, expected an array");
  EXPECT_STREQ(error_without({"decoder"}, "type").what(),
               "t: decoder.type: found nothing, expected \"ByteLevel\"");
}

TEST(TokenizerFile, RefusesWhatIsNoJsonObject) {
  EXPECT_STREQ(error_of_text("[]").what(), "t: found an array, expected an object");
  EXPECT_EQ(error_of_text("").code(), ErrorCode::kCorruptData);
  EXPECT_EQ(error_of_text(std::string(100'000, '[')).code(), ErrorCode::kCorruptData);
}

TEST(TokenizerFile, RefusesIdsThatAreNotUniqueOrLeaveGaps) {
  EXPECT_STREQ(error_with({"model", "vocab", "ab"}, 7).what(),
               "t: model.vocab: the id 7 belongs to \"ć\" and to \"ab\"");
  EXPECT_STREQ(error_with({"model", "vocab", "ab"}, 259).what(),
               "t: model.vocab: the id 259 of \"ab\", expected ids from 0 to 258 without gaps");
  EXPECT_STREQ(error_with({"model", "vocab", "ab"}, -1).what(),
               "t: model.vocab: the id -1 of \"ab\", expected ids from 0 to 258 without gaps");
  EXPECT_STREQ(error_with({"model", "vocab", "ab"}, std::int64_t{1} << 40).what(),
               "t: model.vocab: the id 1099511627776 of \"ab\", expected ids from 0 to 258 without "
               "gaps");
  for (const Json& id : {Json(1.5), Json("1"), Json(), Json(Json::Number{"1e2"})}) {
    EXPECT_THAT(error_with({"model", "vocab", "ab"}, id).what(),
                HasSubstr("t: model.vocab: the id of \"ab\" is "));
  }
}

TEST(TokenizerFile, RefusesTokensOutsideTheAlphabet) {
  EXPECT_STREQ(error_after([](Json& file) {
                 at(file, {"model", "vocab"}).members()[256].first = "a b";
               }).what(),
               "t: model.vocab: the token \"a b\", expected characters of the byte-level alphabet");
  EXPECT_STREQ(error_after([](Json& file) {
                 at(file, {"model", "vocab"}).members()[256].first = "";
               }).what(),
               "t: model.vocab: the token \"\", expected characters of the byte-level alphabet");
}

TEST(TokenizerFile, RefusesAVocabularyThatLacksAByte) {
  EXPECT_STREQ(error_after([](Json& file) {
                 at(file, {"model", "vocab"}).members()['z'].first = "zz";
               }).what(),
               "t: model.vocab: no token for the byte 0x7a, expected one for each of 256");
}

TEST(TokenizerFile, RefusesMergesThatFitNoTokens) {
  const auto with_merge = [](const Json& merge) {
    return error_after([&](Json& file) { at(file, {"model", "merges"}).items()[1] = merge; });
  };
  for (const Json& merge : {Json(1), Json("ab"), Json("a b c"), Json(" b"), Json(Json::array()),
                            Json(Json::array({"a"})), Json(Json::array({"a", 1})),
                            Json(Json::array({"a", "b", "c"}))}) {
    EXPECT_THAT(with_merge(merge).what(), HasSubstr("t: model.merges[1]: found "));
  }
  EXPECT_STREQ(with_merge("zz y").what(),
               "t: model.merges[1]: merges \"zz\" and \"y\", expected both and their union in the "
               "vocabulary");
  EXPECT_STREQ(with_merge("x y").what(),
               "t: model.merges[1]: merges \"x\" and \"y\", expected both and their union in the "
               "vocabulary");
  EXPECT_THAT(with_merge("😀 y").what(), HasSubstr("expected both and their union"));
}

TEST(TokenizerFile, RefusesAddedTokensItCannotMatch) {
  const auto with_option = [](const char* key, const Json& value) {
    return error_after(
        [&](Json& file) { at(at(file, {"added_tokens"}).items()[0], {key}) = value; });
  };
  EXPECT_STREQ(with_option("normalized", true).what(),
               "t: added_tokens[0].normalized: found true, expected false");
  EXPECT_EQ(with_option("lstrip", true).code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(with_option("content", "").what(),
               "t: added_tokens[0].content: 0 bytes, expected 1 to 1024");
  EXPECT_STREQ(with_option("content", std::string(2000, 'x')).what(),
               "t: added_tokens[0].content: 2000 bytes, expected 1 to 1024");
  EXPECT_STREQ(with_option("id", "x").what(), "t: added_tokens[0].id: found \"x\", expected an id");
  EXPECT_STREQ(with_option("id", -1).what(), "t: added_tokens[0].id: found -1, expected an id");
  EXPECT_STREQ(
      with_option("id", 3000).what(),
      "t: added_tokens[0]: the id 3000 of \"<s>\", expected ids from 0 to 258 without gaps");
  EXPECT_STREQ(with_option("id", 97).what(),
               "t: model.vocab: the id 97 belongs to \"<s>\" and to \"a\"");
  EXPECT_STREQ(error_after([](Json& file) {
                 Json& added = at(file, {"added_tokens"});
                 added.push_back(added.items()[0]);
               }).what(),
               "t: added_tokens[1].content: \"<s>\" is added twice");
}

TEST(TokenizerFile, CutsLongTokensInMessages) {
  std::string token;
  for (int i = 0; i < 1000; ++i) token += "é";
  const Error error = error_after([&](Json& file) {
    at(file, {"model", "vocab"}).members()[256].first = token + " ";
  });
  EXPECT_LT(std::string(error.what()).size(), 200u);
  EXPECT_EQ(utf8_valid_prefix(error.what()), std::string_view(error.what()).size());
}

}  // namespace
}  // namespace clefkit
