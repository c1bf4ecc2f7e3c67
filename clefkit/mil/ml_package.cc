#include "clefkit/mil/ml_package.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/base/sha256.h"

namespace clefkit::mil {
namespace {

namespace fs = std::filesystem;

constexpr char kAuthor[] = "com.apple.CoreML";  // Of every item, and the folder they lie in.

// A UUID of version 8, whose other bits are the maker's: here those of a digest, so that the same
// package is the same bytes.
std::string identifier(std::string_view content) {
  const std::string hex = sha256_hex(as_bytes(content));
  const std::string_view digits = hex;
  return fmt::format("{}-{}-8{}-8{}-{}", digits.substr(0, 8), digits.substr(8, 4),
                     digits.substr(12, 3), digits.substr(15, 3), digits.substr(18, 12));
}

std::string manifest(const std::string& model, bool with_weights) {
  const auto item = [](const std::string& name, const char* description) {
    return Json::object({{"author", kAuthor},
                         {"description", description},
                         {"name", name},
                         {"path", fmt::format("{}/{}", kAuthor, name)}});
  };
  const std::string root = identifier(model);
  Json items = Json::object({{root, item("model.mlmodel", "CoreML Model Specification")}});
  if (with_weights) items.set(identifier(root), item("weights", "CoreML Model Weights"));
  return to_pretty_string(Json::object({{"fileFormatVersion", "1.0.0"},
                                        {"itemInfoEntries", std::move(items)},
                                        {"rootModelIdentifier", root}})) +
         "\n";
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw_error(ErrorCode::kUnavailable, path.string(), "cannot create the directory: {}",
                error.message());
  }
}

void copy_whole(const fs::path& from, const fs::path& to) {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  const MappedFile source(from);
  AtomicFile copy(to);
  for (Bytes rest = source.bytes(); !rest.empty();) {
    const Bytes step = rest.first(std::min(kStep, rest.size()));
    copy.write(step);
    release_pages(step);
    rest = rest.subspan(step.size());
  }
  copy.commit();
}

PackagedWeights add_weights(const fs::path& weights, const fs::path& target) {
  std::error_code error;
  // A link to a symbolic link would lead out of the package.
  const fs::path source = fs::canonical(weights, error);
  if (error) {
    throw Error(ErrorCode::kNotFound, weights.string(),
                "no such file, expected the weights of the program");
  }
  if (!fs::is_regular_file(source, error)) {
    throw Error(ErrorCode::kInvalidArgument, weights.string(),
                "is no file, expected the weights of the program");
  }
  make_directories(target.parent_path());
  fs::create_hard_link(source, target, error);
  if (!error) return PackagedWeights::kLinked;
  copy_whole(source, target);
  return PackagedWeights::kCopied;
}

}  // namespace

PackagedWeights write_ml_package(const fs::path& package, const Program& program,
                                 const fs::path& weights, const MlModelInfo& info) {
  const std::string model = to_ml_model(program, info);
  const bool with_weights = has_weights(program);

  AtomicDirectory directory(package);
  const fs::path place = packaged_model(directory.partial());
  make_directories(place.parent_path());
  write_file(place, model);
  const PackagedWeights packaged = with_weights
                                       ? add_weights(weights, packaged_weights(directory.partial()))
                                       : PackagedWeights::kNone;
  write_file(directory.partial() / "Manifest.json", manifest(model, with_weights));
  directory.commit();
  return packaged;
}

fs::path packaged_model(const fs::path& package) {
  return package / "Data" / kAuthor / "model.mlmodel";
}

fs::path packaged_weights(const fs::path& package) {
  return package / "Data" / kAuthor / "weights" / "weight.bin";
}

}  // namespace clefkit::mil
