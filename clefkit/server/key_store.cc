#include "clefkit/server/key_store.h"

#include <algorithm>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/lines.h"
#include "clefkit/base/sha256.h"
#include "clefkit/base/trimmed.h"

namespace clefkit::server {
namespace {

constexpr std::uint64_t kFileLimitBytes = 1 << 20;
constexpr auto kCheckEvery = std::chrono::seconds(1);

std::string digest_of(std::string_view key) { return sha256_hex(as_bytes(key)); }

// Looks at all of them, whichever is right.
bool contains(const std::vector<std::string>& digests, const std::string& digest) {
  bool found = false;
  for (const std::string& known : digests) {
    found |= equal_in_constant_time(known, digest);
  }
  return found;
}

}  // namespace

KeyStore::KeyStore(std::vector<std::string> keys, std::filesystem::path file)
    : file_(std::move(file)) {
  for (const std::string& key : keys) {
    if (!trimmed(key).empty()) digests_.push_back(digest_of(trimmed(key)));
  }
  if (file_.empty()) return;
  file_time_ = std::filesystem::exists(file_) ? std::filesystem::last_write_time(file_)
                                              : std::filesystem::file_time_type{};
  try {
    file_digests_ = read_file_keys();
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.where(), error.message());
  }
}

std::vector<std::string> KeyStore::read_file_keys() const {
  const std::string text = read_file(file_, kFileLimitBytes);
  std::vector<std::string> digests;
  for (const Line& line : filled_lines(text)) {
    const std::string_view key = trimmed(line.text);
    if (!key.empty() && !key.starts_with('#')) digests.push_back(digest_of(key));
  }
  if (digests.empty()) {
    throw Error(ErrorCode::kInvalidArgument, file_.string(), "no keys, expected one a line");
  }
  return digests;
}

void KeyStore::reload_if_changed() {
  const auto now = std::chrono::steady_clock::now();
  if (file_.empty() || now - checked_ < kCheckEvery) return;
  checked_ = now;
  std::error_code error;
  const auto time = std::filesystem::last_write_time(file_, error);
  if (!error && time == file_time_ && problem_.empty()) return;
  try {
    file_digests_ = read_file_keys();
    file_time_ = time;
    problem_.clear();
  } catch (const Error& failure) {
    // Whoever takes the keys away means it.
    file_digests_.clear();
    problem_ = failure.what();
  }
}

bool KeyStore::accepts(std::string_view key) {
  reload_if_changed();
  const std::string digest = digest_of(key);
  const bool in_given = contains(digests_, digest);
  return contains(file_digests_, digest) || in_given;
}

std::optional<std::string_view> key_of(std::optional<std::string_view> authorization,
                                       std::optional<std::string_view> auth_key) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization && authorization->size() > kScheme.size()) {
    const auto same_letter = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    if (std::ranges::equal(authorization->substr(0, kScheme.size()), kScheme, same_letter)) {
      return trimmed(authorization->substr(kScheme.size()));
    }
  }
  if (auth_key && !trimmed(*auth_key).empty()) return trimmed(*auth_key);
  return std::nullopt;
}

}  // namespace clefkit::server
