#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "clefkit/base/json.h"

namespace clefkit {

struct MediaSourceOptions {
  // Whether `file:` paths are read (the command line), and what relative ones are relative to.
  bool allow_files = false;
  std::filesystem::path base_directory{};
  std::size_t max_bytes = std::size_t{64} << 20;
};

// The bytes of one entry of a request's `images` or `videos`: a data URL, plain base64, an object
// {"content_type": …, "base64": …}, or `file:` with a path (cli.md, Requests). Nothing is fetched
// from the network: http(s) URLs are refused in one sentence. Throws Error(kInvalidArgument), or
// kNotFound/kUnavailable turned into kInvalidArgument for files that cannot be read, with `where`
// (`images[0]`).
std::vector<std::uint8_t> read_media_source(const Json& item, const std::string& where,
                                            const MediaSourceOptions& options);

}  // namespace clefkit
