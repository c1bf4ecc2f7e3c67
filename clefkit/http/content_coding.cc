#include "clefkit/http/content_coding.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "clefkit/base/error.h"
#include "clefkit/http/message.h"

namespace clefkit::http {
namespace {

constexpr char kBody[] = "body";
// Log2 of the memory that a frame may ask for, whatever its content: RFC 8878 recommends 8 MiB.
constexpr int kMaxWindowLog = 23;

std::string decode_zstd(std::string_view body, std::size_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  std::string decoded;
  std::string buffer(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  std::size_t expected = 1;  // Zero between frames.
  while (in.pos < in.size || expected != 0) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    const std::size_t before = in.pos;
    expected = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(expected) != 0) {
      throw_error(ErrorCode::kInvalidArgument, kBody, "not valid zstd: {}",
                  ZSTD_getErrorName(expected));
    }
    if (decoded.size() + out.pos > max_bytes) {
      throw_error(ErrorCode::kTooLarge, kBody, "more than {} bytes when decompressed", max_bytes);
    }
    decoded.append(buffer, 0, out.pos);
    if (in.pos == before && out.pos == 0 && expected != 0) {
      throw_error(ErrorCode::kInvalidArgument, kBody, "zstd that ends in the middle of a frame");
    }
  }
  return decoded;
}

}  // namespace

std::string decode_content(std::string_view coding, std::string body, std::size_t max_bytes) {
  if (coding.empty() || equal_ignoring_case(coding, "identity")) return body;
  if (equal_ignoring_case(coding, "zstd")) return decode_zstd(body, max_bytes);
  throw_error(ErrorCode::kUnsupported, "content-encoding", "\"{}\", expected {} or none", coding,
              kContentCodings);
}

}  // namespace clefkit::http
