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
#include "clefkit/mil/checker.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/programs/program_weights.h"
#include "clefkit/programs/vision_block_program.h"

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

class Exporter {
 public:
  Exporter(const fs::path& bundle, const fs::path& out, const CancelToken& cancel,
           const std::function<void(const ExportProgress&)>& progress)
      : bundle_(bundle),
        manifest_(manifest_with_programs(bundle)),
        cancel_(cancel),
        progress_(progress),
        directory_((check_outside(bundle, out), out)) {}

  std::vector<ExportedPackage> run() && {
    total_ = manifest_.programs.size();
    if (manifest_.text_only) {
      export_text();
    } else {
      const Model model = open_bundle(bundle_);
      const std::vector<PlannedProgram> vision = plan_vision_programs(model.config);
      total_ += vision.size();
      export_text();
      for (std::size_t block = 0; block < vision.size(); ++block) {
        export_vision_block(model, vision[block], block);
      }
    }
    directory_.commit();
    return std::move(packages_);
  }

 private:
  void export_text() {
    std::map<std::string, fs::path> first_copies;  // By the weight file in the bundle.
    for (const ProgramRecord& record : manifest_.programs) {
      const fs::path weights = bundle_path(bundle_, record.weights);
      // Within one directory a hard link is possible where one to the bundle may not be.
      const auto earlier = first_copies.find(record.weights);
      const ExportedPackage& exported = add(
          record.name, fmt::format("Layers {} of the text layers", fmt::join(record.layers, ", ")),
          read_bundle_program(bundle_, record),
          earlier == first_copies.end() ? weights : earlier->second);
      if (exported.weights == mil::PackagedWeights::kCopied) {
        first_copies.try_emplace(record.weights,
                                 mil::packaged_weights(directory_.partial() / exported.file));
      }
    }
  }

  void export_vision_block(const Model& model, const PlannedProgram& planned, std::size_t block) {
    const ProgramWeights weights(model, planned);
    const mil::Program program = emit_vision_block(model.config.vision, block, weights.finder(),
                                                   {.weight_path = mil::kWeightPath});
    const mil::WeightBlobReader reader(weights.file(), planned.name);
    mil::require_sound(program, {{mil::kWeightPath, &reader}}, ErrorCode::kUnsupported,
                       planned.name);
    // The package links it and so keeps it.
    const fs::path file = directory_.partial() / (planned.name + ".bin");
    write_file(file, as_text(weights.file()));
    add(planned.name, fmt::format("Block {} of the vision encoder", block), program, file).weights =
        mil::PackagedWeights::kCopied;
    fs::remove(file);
  }

  ExportedPackage& add(const std::string& name, const std::string& what,
                       const mil::Program& program, const fs::path& weights) {
    cancel_.throw_if_cancelled();
    ExportedPackage exported{.program = name, .file = name + ".mlpackage"};
    const fs::path package = directory_.partial() / exported.file;
    exported.weights = mil::write_ml_package(
        package, program, weights,
        {.description = fmt::format("{} of a Clef decision model: {}", what, name),
         .version = manifest_.revision,
         .license = manifest_.license});
    exported.model_bytes = fs::file_size(mil::packaged_model(package));
    if (exported.weights != mil::PackagedWeights::kNone) {
      exported.weight_bytes = fs::file_size(mil::packaged_weights(package));
    }
    packages_.push_back(std::move(exported));
    if (progress_) progress_({packages_.size(), total_, name});
    return packages_.back();
  }

  const fs::path& bundle_;
  const Manifest manifest_;
  const CancelToken& cancel_;
  const std::function<void(const ExportProgress&)>& progress_;
  AtomicDirectory directory_;
  std::size_t total_ = 0;
  std::vector<ExportedPackage> packages_;
};

}  // namespace

std::vector<ExportedPackage> export_coreml(
    const fs::path& bundle, const fs::path& out, const CancelToken& cancel,
    const std::function<void(const ExportProgress&)>& progress) {
  return Exporter(bundle, out, cancel, progress).run();
}

}  // namespace clefkit
