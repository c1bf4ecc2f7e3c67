#include "clefkit/bundle/fast_precision.h"

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/base/sha256.h"
#include "clefkit/bundle/bundle_files.h"
#include "clefkit/bundle/manifest.h"

namespace clefkit {
namespace {

constexpr std::uint64_t kLimitBytes = 64 << 10;

std::filesystem::path record_path(const std::filesystem::path& bundle) {
  return bundle / kFastPrecisionFile;
}

std::string manifest_digest(const std::filesystem::path& bundle) {
  return sha256_of_file(bundle / kManifestFile);
}

}  // namespace

bool is_accurate_enough(const FastPrecision& measured) {
  return measured.questions >= kFastMinQuestions && measured.mean_drift <= kFastMaxMeanDrift &&
         measured.changed_beyond_margin == 0;
}

void write_fast_precision(const std::filesystem::path& bundle, const FastPrecision& measured) {
  write_file(
      record_path(bundle),
      to_pretty_string(Json::object({{"manifest_sha256", manifest_digest(bundle)},
                                     {"questions", measured.questions},
                                     {"mean_drift", measured.mean_drift},
                                     {"largest_drift", measured.largest_drift},
                                     {"changed_beyond_margin", measured.changed_beyond_margin}})) +
          "\n");
}

std::optional<FastPrecision> read_fast_precision(const std::filesystem::path& bundle) {
  const std::filesystem::path path = record_path(bundle);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const Json json = parse_json(read_file(path, kLimitBytes), path.string(), {});
  const Json* const digest = json.find("manifest_sha256");
  const auto count = [&](const char* key) -> std::uint64_t {
    const Json* const value = json.find(key);
    if (value == nullptr || !value->as_uint64()) {
      throw_error(ErrorCode::kCorruptData, path.string(), "{}: not found, expected a count", key);
    }
    return *value->as_uint64();
  };
  const auto drift = [&](const char* key) -> double {
    const Json* const value = json.find(key);
    if (value == nullptr || !value->as_double() || !(*value->as_double() >= 0)) {
      throw_error(ErrorCode::kCorruptData, path.string(),
                  "{}: not found, expected a number from 0 on", key);
    }
    return *value->as_double();
  };
  if (digest == nullptr || !digest->is_string()) {
    throw Error(ErrorCode::kCorruptData, path.string(),
                "manifest_sha256: not found, expected the manifest's SHA-256");
  }
  const FastPrecision measured{.questions = count("questions"),
                               .mean_drift = drift("mean_drift"),
                               .largest_drift = drift("largest_drift"),
                               .changed_beyond_margin = count("changed_beyond_margin")};
  if (digest->string() != manifest_digest(bundle)) return std::nullopt;
  return measured;
}

void remove_fast_precision(const std::filesystem::path& bundle) {
  std::error_code error;
  std::filesystem::remove(record_path(bundle), error);
  if (error) {
    throw_error(ErrorCode::kUnavailable, record_path(bundle).string(), "cannot be removed: {}",
                error.message());
  }
}

}  // namespace clefkit
