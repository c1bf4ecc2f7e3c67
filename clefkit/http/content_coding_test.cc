#include "clefkit/http/content_coding.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <optional>

#include "clefkit/base/error.h"

namespace clefkit::http {
namespace {

std::string compressed(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (window_log != 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::optional<ErrorCode> code_of(std::string_view coding, std::string body, std::size_t max) {
  try {
    decode_content(coding, std::move(body), max);
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(ContentCoding, LeavesWhatIsNotCompressed) {
  EXPECT_EQ(decode_content("", "abc", 1), "abc");
  EXPECT_EQ(decode_content("Identity", "abc", 1), "abc");
}

// Written with the zstd program: `printf 'hello, hello, hello' | zstd --no-check`, its bytes by
// xxd.
TEST(ContentCoding, DecodesAnotherProgramsFrame) {
  constexpr unsigned char kFrame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x6d, 0x00,
                                      0x00, 0x38, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x2c,
                                      0x20, 0x01, 0x00, 0xe2, 0x8a, 0x11};
  const std::string frame(reinterpret_cast<const char*>(kFrame), sizeof(kFrame));
  EXPECT_EQ(decode_content("zstd", frame, 100), "hello, hello, hello");
}

TEST(ContentCoding, DecodesSeveralFramesAndAnySize) {
  for (const std::size_t size : {0UL, 1UL, 1000UL, 131'071UL, 131'072UL, 131'073UL, 1'000'000UL}) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * i) >> 7);
    EXPECT_EQ(decode_content("ZSTD", compressed(text), size), text) << size;
    EXPECT_EQ(decode_content("zstd", compressed(text) + compressed("tail"), size + 4),
              text + "tail");
  }
}

TEST(ContentCoding, StopsAtTheLimit) {
  const std::string bomb = compressed(std::string(10'000'000, 'a'));
  ASSERT_LT(bomb.size(), 2000);
  EXPECT_EQ(code_of("zstd", bomb, 9'999'999), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of("zstd", bomb, 10'000'000), std::nullopt);
}

TEST(ContentCoding, RefusesWhatIsNotWholeOrValid) {
  const std::string frame = compressed(std::string(5000, 'x') + "end");
  for (std::size_t size = 1; size < frame.size(); ++size) {
    EXPECT_EQ(code_of("zstd", frame.substr(0, size), 10'000), ErrorCode::kInvalidArgument) << size;
  }
  EXPECT_EQ(code_of("zstd", "", 10), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("zstd", R"({"state": "plain"})", 100), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("zstd", frame + "more", 10'000), ErrorCode::kInvalidArgument);
}

TEST(ContentCoding, RefusesAFrameThatWantsTooMuchMemory) {
  const std::string text(20'000'000, 'a');
  EXPECT_EQ(code_of("zstd", compressed(text, 24), text.size()), ErrorCode::kInvalidArgument);
}

TEST(ContentCoding, RefusesOtherCodings) {
  for (const char* coding : {"gzip", "br", "zstd, zstd", "deflate"}) {
    EXPECT_EQ(code_of(coding, "abc", 10), ErrorCode::kUnsupported) << coding;
  }
}

}  // namespace
}  // namespace clefkit::http
