#include "clefkit/text/vocabulary.h"

#include <bit>
#include <cassert>
#include <functional>

namespace clefkit {
namespace {

std::uint32_t hash_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(bytes));
}

}  // namespace

Vocabulary::Vocabulary(std::size_t tokens) : slots_(std::bit_ceil(2 * tokens + 1)) {
  ends_.reserve(tokens);
}

void Vocabulary::add(std::string_view bytes, Lookup lookup) {
  assert(2 * size() < slots_.size());
  const auto id = static_cast<std::int32_t>(size());
  buffer_ += bytes;
  ends_.push_back(static_cast<std::uint32_t>(buffer_.size()));
  if (lookup == Lookup::kByIdOnly) return;
  const std::uint32_t hash = hash_of(bytes);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id >= 0) at = (at + 1) & mask;
  slots_[at] = {hash, id};
}

std::optional<std::int32_t> Vocabulary::find(std::string_view wanted) const {
  const std::uint32_t hash = hash_of(wanted);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && bytes(slots_[at].id) == wanted) return slots_[at].id;
  }
  return std::nullopt;
}

}  // namespace clefkit
