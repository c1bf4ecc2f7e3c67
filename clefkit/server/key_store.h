#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit::server {

// The keys that callers may show. Keeps digests only, and compares them in constant time.
// Used by one thread.
class KeyStore {
 public:
  // `file`, if any, has a key a line; blank lines and lines with # are none. It is read again when
  // it changes. Throws Error(kInvalidArgument) when it cannot be read or holds no key.
  KeyStore(std::vector<std::string> keys, std::filesystem::path file);

  // Without keys nobody is asked for one.
  bool asks_for_key() const { return !digests_.empty() || !file_.empty(); }
  bool accepts(std::string_view key);

  // Why the file could not be read again, if so: until it can, none of its keys is good.
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::string> read_file_keys() const;
  void reload_if_changed();

  std::vector<std::string> digests_;       // Of keys given directly.
  std::vector<std::string> file_digests_;  // Of the file's.
  std::filesystem::path file_;
  std::filesystem::file_time_type file_time_{};
  std::chrono::steady_clock::time_point checked_{};
  std::string problem_;
};

// The key of `Authorization: Bearer …`, or of what Cloudflare's and other clients send in its
// place (`X-Auth-Key`); nothing when there is none.
std::optional<std::string_view> key_of(std::optional<std::string_view> authorization,
                                       std::optional<std::string_view> auth_key);

}  // namespace clefkit::server
