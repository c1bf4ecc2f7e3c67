#include "clefkit/base/json.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/output.h"
#include "clefkit/convert/export_coreml.h"

namespace clefkit::cli {
namespace {

const char* weights_word(mil::PackagedWeights weights) {
  switch (weights) {
    case mil::PackagedWeights::kNone:
      return "none";
    case mil::PackagedWeights::kLinked:
      return "linked";
    case mil::PackagedWeights::kCopied:
      break;
  }
  return "copied";
}

struct ExportCommand {
  std::string bundle;
  std::string output;
  std::string format = "coreml";
  bool as_json = false;
  bool quiet = false;

  int run() const {
    const InterruptScope interruptible;
    std::vector<ExportedPackage> packages;
    {
      Progress progress("exporting", "packages", quiet);
      packages = export_coreml(bundle, output, interrupt_token(), [&](const ExportProgress& step) {
        progress.update(static_cast<double>(step.packages_done),
                        static_cast<double>(step.packages_total), step.program);
      });
    }
    report(packages);
    return kDone;
  }

  void report(const std::vector<ExportedPackage>& packages) const {
    std::uint64_t model_bytes = 0;
    std::uint64_t copied_bytes = 0;
    Json list = Json::array();
    for (const ExportedPackage& package : packages) {
      model_bytes += package.model_bytes;
      if (package.weights == mil::PackagedWeights::kCopied) copied_bytes += package.weight_bytes;
      list.push_back(Json::object({{"program", package.program},
                                   {"file", package.file},
                                   {"model_bytes", package.model_bytes},
                                   {"weight_bytes", package.weight_bytes},
                                   {"weights", weights_word(package.weights)}}));
    }
    if (as_json) {
      write_line(to_string(Json::object({{"path", output},
                                         {"format", format},
                                         {"packages", std::move(list)},
                                         {"model_bytes", model_bytes},
                                         {"copied_weight_bytes", copied_bytes}})));
    } else if (!quiet) {
      const std::string weights =
          copied_bytes == 0
              ? "weights shared with the bundle"
              : fmt::format("{:.1f} MB of weights copied", static_cast<double>(copied_bytes) / 1e6);
      fmt::print(stderr, "clefkit: {}: {} ML Packages, {:.1f} MB of programs, {}\n", output,
                 packages.size(), static_cast<double>(model_bytes) / 1e6, weights);
    }
  }
};

}  // namespace

void add_export_command(CommandLine& line) {
  auto command = std::make_shared<ExportCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "export", "Write a bundle's programs as ML Packages, which Xcode and Core ML open");
  app.add_option("bundle", command->bundle, "The bundle's directory")->required();
  app.add_option("--format", command->format, "coreml: an ML Package (.mlpackage) for each program")
      ->check(CLI::IsMember({"coreml"}))
      ->capture_default_str();
  app.add_option("-o,--output", command->output,
                 "The directory to make; it must be empty if it exists")
      ->required();
  app.add_flag("--json", command->as_json, "Print a summary as JSON");
  app.add_flag("--quiet", command->quiet, "No progress and no summary on standard error");
  app.footer(
      "Try:  clefkit export clef-flash-lut6 --format coreml -o clef-flash-coreml\n"
      "Every program is checked before it is written. A package's weights are a hard link to the\n"
      "bundle's file, which takes no space, or a copy where the output is on another disk: never\n"
      "change one in place. The packages need Core ML of macOS 15 or later; each is a part of the\n"
      "text layers with its states as inputs and outputs (docs/ane.md), not a whole model.\n"
      "Files gather in <output>.partial and appear under their name when all are done.");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
