#include "clefkit/convert/export_coreml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/bundle/bundle_program.h"
#include "clefkit/bundle/open_bundle.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

Manifest manifest_with_programs(const fs::path& bundle) {
  if (!is_bundle(bundle)) {
    throw_error(ErrorCode::kNotFound, bundle.string(),
                "no {} there, expected a bundle, as `clefkit convert` makes them", kManifestFile);
  }
  Manifest manifest = read_manifest(bundle);
  const std::string where = (bundle / kManifestFile).string();
  if (manifest.programs.empty()) {
    throw Error(ErrorCode::kNotFound, where,
                "the bundle has no programs, expected those of the text layers; converting the "
                "checkpoint again adds them");
  }
  for (const ProgramRecord& program : manifest.programs) {
    const fs::path name = program.name;
    if (name.empty() || name.filename() != name || name == "." || name == "..") {
      throw_error(ErrorCode::kCorruptData, where,
                  "a program is called {}, expected the name of a file",
                  to_string(Json(program.name)));
    }
    if (std::ranges::count(manifest.programs, program.name, &ProgramRecord::name) > 1) {
      throw_error(ErrorCode::kCorruptData, where, "two programs are called {}, expected one",
                  program.name);
    }
  }
  return manifest;
}

// A bundle holds nothing that its manifest does not name.
void check_outside(const fs::path& bundle, const fs::path& out) {
  std::error_code error;
  const fs::path root = fs::canonical(bundle, error);
  const fs::path target = fs::weakly_canonical(fs::absolute(out, error), error);
  if (!error && std::ranges::mismatch(root, target).in1 == root.end()) {
    throw Error(ErrorCode::kInvalidArgument, out.string(),
                "lies in the bundle, expected a directory outside of it");
  }
}

mil::MlModelInfo info_of(const ProgramRecord& program, const Manifest& manifest) {
  return {.description = fmt::format("Layers {} of the text layers of a Clef decision model: {}",
                                     fmt::join(program.layers, ", "), program.name),
          .version = manifest.revision,
          .license = manifest.license};
}

}  // namespace

std::vector<ExportedPackage> export_coreml(
    const fs::path& bundle, const fs::path& out, const CancelToken& cancel,
    const std::function<void(const ExportProgress&)>& progress) {
  const Manifest manifest = manifest_with_programs(bundle);
  check_outside(bundle, out);
  AtomicDirectory directory(out);
  std::vector<ExportedPackage> packages;
  std::map<std::string, fs::path> first_copies;  // By the weight file in the bundle.
  for (const ProgramRecord& record : manifest.programs) {
    cancel.throw_if_cancelled();
    const fs::path weights = bundle_path(bundle, record.weights);
    const mil::Program program = read_bundle_program(bundle, record);
    ExportedPackage exported{.program = record.name, .file = record.name + ".mlpackage"};
    const fs::path package = directory.partial() / exported.file;
    // Within one directory a hard link is possible where one to the bundle may not be.
    const auto earlier = first_copies.find(record.weights);
    exported.weights = mil::write_ml_package(
        package, program, earlier == first_copies.end() ? weights : earlier->second,
        info_of(record, manifest));
    exported.model_bytes = fs::file_size(mil::packaged_model(package));
    if (exported.weights != mil::PackagedWeights::kNone) {
      exported.weight_bytes = fs::file_size(mil::packaged_weights(package));
    }
    if (exported.weights == mil::PackagedWeights::kCopied) {
      first_copies.try_emplace(record.weights, mil::packaged_weights(package));
    }
    packages.push_back(std::move(exported));
    if (progress) progress({packages.size(), manifest.programs.size(), record.name});
  }
  directory.commit();
  return packages;
}

}  // namespace clefkit
