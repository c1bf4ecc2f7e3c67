#include "clefkit/text/tokenizer.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>

#include "clefkit/base/error.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/base/utf8.h"
#include "clefkit/text/nfc.h"

namespace clefkit {
namespace {

using Ids = std::vector<std::int32_t>;

const std::string kGolden = CLEFKIT_SOURCE_DIR "/tests/golden/tokenizer/";

// Read once and only when asked for: it takes a third of a second.
template <Pretokenizer pretokenizer>
const Tokenizer& release() {
  static const Tokenizer tokenizer(read_file(CLEFKIT_RELEASE_TOKENIZER, 64 << 20), "tokenizer.json",
                                   pretokenizer);
  return tokenizer;
}
const Tokenizer& release(Pretokenizer pretokenizer) {
  switch (pretokenizer) {
    case Pretokenizer::kPatternA:
      return release<Pretokenizer::kPatternA>();
    case Pretokenizer::kPatternB:
      return release<Pretokenizer::kPatternB>();
    case Pretokenizer::kFile:
      break;
  }
  return release<Pretokenizer::kFile>();
}

Tokenizer small(Pretokenizer pretokenizer = Pretokenizer::kFile) {
  return Tokenizer(read_file(kGolden + "small_tokenizer.json", 1 << 20), "small", pretokenizer);
}

struct Case {
  std::string text;
  Ids ids;
  Ids ids_pattern_b;
};

Ids ids_of(const Json& list) {
  Ids ids;
  for (const Json& id : list.items()) ids.push_back(static_cast<std::int32_t>(*id.as_int64()));
  return ids;
}

std::vector<Case> golden_cases() {
  const Json cases = parse_json(read_file(kGolden + "cases.json", 1 << 20), "cases", {});
  std::vector<Case> out;
  for (const Json& entry : cases.items()) {
    const Json* b = entry.find("ids_pattern_b");
    const Ids ids = ids_of(*entry.find("ids"));
    out.push_back({entry.find("text")->string(), ids, b == nullptr ? ids : ids_of(*b)});
  }
  return out;
}

TEST(Tokenizer, GivesTheReferencesIdsUnderBothPatterns) {
  const std::vector<Case> cases = golden_cases();
  ASSERT_EQ(cases.size(), 650u);
  for (const Case& c : cases) {
    EXPECT_EQ(release(Pretokenizer::kPatternA).encode(c.text), c.ids) << c.text;
    EXPECT_EQ(release(Pretokenizer::kFile).encode(c.text), c.ids) << c.text;
    EXPECT_EQ(release(Pretokenizer::kPatternB).encode(c.text), c.ids_pattern_b) << c.text;
  }
}

TEST(Tokenizer, CountsTokensOfCombiningScriptsAsMeasuredOnTheReference) {
  const auto count = [](Pretokenizer pretokenizer, std::string_view text) {
    return release(pretokenizer).encode(text).size();
  };
  EXPECT_EQ(count(Pretokenizer::kPatternA, "नमस्ते दुनिया"), 10u);
  EXPECT_EQ(count(Pretokenizer::kPatternB, "नमस्ते दुनिया"), 6u);
  EXPECT_EQ(count(Pretokenizer::kPatternA, "สวัสดีครับ"), 7u);
  EXPECT_EQ(count(Pretokenizer::kPatternB, "สวัสดีครับ"), 3u);
}

TEST(Tokenizer, KnowsTheReleasesAddedTokens) {
  const Tokenizer& tokenizer = release(Pretokenizer::kFile);
  EXPECT_EQ(tokenizer.vocabulary_size(), 248077u);
  EXPECT_EQ(tokenizer.token_id("<|endoftext|>"), 248044);
  EXPECT_EQ(tokenizer.token_id("<|image_pad|>"), 248056);
  EXPECT_EQ(tokenizer.token_id("</think>"), 248069);
  EXPECT_EQ(tokenizer.token_id("<|audio_pad|>"), 248076);
  EXPECT_EQ(tokenizer.token_id("hello"), std::nullopt);
  EXPECT_EQ(tokenizer.encode("<think><|im_end|>"), (Ids{248068, 248046}));
}

TEST(Tokenizer, FindsAddedTokensBeforeItNormalises) {
  // Normalised as a whole, `>` and U+0338 would become one character and the token would be lost.
  const Ids ids = release(Pretokenizer::kFile).encode("<think>\u0338");
  EXPECT_EQ(ids[0], 248068);
  EXPECT_EQ(release(Pretokenizer::kFile).decode(ids), "<think>\u0338");
}

TEST(Tokenizer, DecodesToTheNormalisedText) {
  for (const auto pretokenizer : {Pretokenizer::kPatternA, Pretokenizer::kPatternB}) {
    const Tokenizer& tokenizer = release(pretokenizer);
    const Tokenizer small_tokenizer = small(pretokenizer);
    for (const Case& c : golden_cases()) {
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(c.text)), to_nfc(c.text));
      EXPECT_EQ(small_tokenizer.decode(small_tokenizer.encode(c.text)), to_nfc(c.text));
    }
  }
}

TEST(Tokenizer, LosesNoCharacterOfUnicode) {
  std::string text;
  for (std::uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) append_utf8(text, c);
  }
  const Tokenizer tokenizer = small();
  EXPECT_TRUE(tokenizer.decode(tokenizer.encode(text)) == to_nfc(text));
}

TEST(Tokenizer, EncodesPiecesOfAMegabyte) {
  const Tokenizer& tokenizer = release(Pretokenizer::kFile);
  for (const std::string unit : {"a", " ", "!", "7", "一", "\u0301\u0323"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    EXPECT_TRUE(tokenizer.decode(tokenizer.encode(text)) == to_nfc(text)) << unit;
  }
}

TEST(Tokenizer, StopsWhenTheCallerCancels) {
  CancelToken cancel;
  EXPECT_EQ(release<Pretokenizer::kFile>().encode("a b", &cancel),
            release<Pretokenizer::kFile>().encode("a b"));
  cancel.cancel();
  try {
    release<Pretokenizer::kFile>().encode("a b", &cancel);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

TEST(Tokenizer, EncodesTheEmptyTextAsNothing) {
  EXPECT_EQ(small().encode(""), Ids());
  EXPECT_EQ(small().decode({}), "");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto message_of = [](std::string_view text) -> std::string {
    try {
      small().encode(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message_of("ab\xFF"), "text: found 0xff at byte 2, expected valid UTF-8");
  EXPECT_EQ(message_of("é\xC3"), "text: found 0xc3 at byte 2, expected valid UTF-8");
  EXPECT_EQ(message_of("\xED\xA0\x80"), "text: found 0xed at byte 0, expected valid UTF-8");
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const Tokenizer tokenizer = small();
  for (const std::int32_t id : {-1, static_cast<std::int32_t>(tokenizer.vocabulary_size())}) {
    EXPECT_THROW(tokenizer.decode(Ids{id}), Error) << id;
  }
}

TEST(Tokenizer, EncodesOnSeveralThreadsAtOnce) {
  const Tokenizer tokenizer = small();
  const std::vector<Case> cases = golden_cases();
  std::vector<Ids> expected;
  for (const Case& c : cases) expected.push_back(tokenizer.encode(c.text));
  std::vector<std::size_t> differences(4);
  std::vector<std::thread> threads;
  for (std::size_t& count : differences) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        count += tokenizer.encode(cases[i].text) == expected[i] ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(differences, testing::Each(0));
}

}  // namespace
}  // namespace clefkit
