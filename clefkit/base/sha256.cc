#include "clefkit/base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "clefkit/base/error.h"
#include "clefkit/base/mapped_file.h"

namespace clefkit {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr ||
      EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "sha256", "OpenSSL cannot start a digest");
  }
}

Sha256::~Sha256() = default;

void Sha256::update(Bytes bytes) {
  if (EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) {
    throw Error(ErrorCode::kInternal, "sha256", "OpenSSL cannot update a digest");
  }
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(state_->context, digest.data(), &size) != 1) {
    throw Error(ErrorCode::kInternal, "sha256", "OpenSSL cannot finish a digest");
  }
  std::string hex;
  for (unsigned int i = 0; i < size; ++i)
    fmt::format_to(std::back_inserter(hex), "{:02x}", digest[i]);
  return hex;
}

std::string sha256_hex(Bytes bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string sha256_of_file(const std::filesystem::path& path,
                           const std::function<void(std::uint64_t)>& progress) {
  constexpr std::size_t kStep = std::size_t{8} << 20;
  const MappedFile file(path);
  Sha256 digest;
  for (Bytes rest = file.bytes(); !rest.empty();) {
    const Bytes step = rest.first(std::min(kStep, rest.size()));
    digest.update(step);
    release_pages(step);
    rest = rest.subspan(step.size());
    if (progress) progress(step.size());
  }
  return digest.finish();
}

}  // namespace clefkit
