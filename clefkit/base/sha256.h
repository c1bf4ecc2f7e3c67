#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "clefkit/base/bytes.h"

namespace clefkit {

// Streaming SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(Bytes bytes);
  // 64 lower-case hex digits. Call once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(Bytes bytes);

// Whether two digests are the same, in a time that does not tell where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// Of a file of any size, in little memory; `progress` is given the bytes of each step and may throw
// to stop. Throws Error(kNotFound, kUnavailable).
std::string sha256_of_file(const std::filesystem::path& path,
                           const std::function<void(std::uint64_t bytes)>& progress = {});

}  // namespace clefkit
