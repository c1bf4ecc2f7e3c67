#include "clefkit/engine/result_cache.h"

#include <algorithm>
#include <utility>

namespace clefkit {
namespace {

// The digest has a fixed length, so the tokens after it cannot be taken for a part of it.
std::string prefix_key(std::span<const std::int32_t> tokens, std::string_view media) {
  std::string key(1, media.empty() ? 't' : 'm');
  key.append(media);
  key.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  return key;
}

std::string features_key(std::string_view digest) {
  std::string key(1, 'f');
  key.append(digest);
  return key;
}

}  // namespace

std::size_t PrefixState::size_bytes() const {
  return sequence->size_bytes() + memory.values().size_bytes();
}

const PrefixState* ResultCache::find_prefix(std::span<const std::int32_t> tokens,
                                            std::string_view media) {
  const Result* const found = find(prefix_key(tokens, media));
  return found != nullptr ? &std::get<PrefixState>(*found) : nullptr;
}

std::shared_ptr<const FloatMatrix> ResultCache::find_features(std::string_view digest) {
  const Result* const found = find(features_key(digest));
  return found != nullptr ? std::get<1>(*found) : nullptr;
}

void ResultCache::insert_prefix(std::span<const std::int32_t> tokens, std::string_view media,
                                PrefixState state) {
  const std::size_t bytes = state.size_bytes();
  insert(prefix_key(tokens, media), std::move(state), bytes);
}

void ResultCache::insert_features(std::string_view digest,
                                  std::shared_ptr<const FloatMatrix> features) {
  const std::size_t bytes = features->values().size_bytes();
  insert(features_key(digest), std::move(features), bytes);
}

const ResultCache::Result* ResultCache::find(std::string_view key) {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return &entries_.front().result;
}

void ResultCache::insert(std::string key, Result result, std::size_t result_bytes) {
  const std::size_t bytes = result_bytes + key.size();
  if (bytes > budget_bytes_ || find(key) != nullptr) return;
  while (size_bytes_ + bytes > budget_bytes_) {
    size_bytes_ -= entries_.back().size_bytes;
    entries_.pop_back();
  }
  entries_.push_front({std::move(key), std::move(result), bytes});
  size_bytes_ += bytes;
}

}  // namespace clefkit
