#include "clefkit/convert/convert.h"

#include "clefkit/base/sha256.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/cli/scales_text.h"
#include "clefkit/eval/calibration.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit::cli {
namespace {

struct ConvertCommand {
  std::string checkpoint;
  std::string output;
  std::string palette = "optimal";
  std::string plan = "grouped";
  std::string calibration = "default";
  ConvertOptions options;
  std::size_t threads = 0;
  bool resume = false;
  bool as_json = false;
  bool quiet = false;

  int run() {
    const InterruptScope interruptible;
    options.palette = *parse_palette_method(palette);
    options.plan = plan == "grouped" ? PlanKind::kGrouped : PlanKind::kSplit;
    Executor executor(threads);
    const ComputeContext context{.executor = executor, .cancel = &interrupt_token()};
    prepare_calibration(context);
    ConvertResult result;
    {
      std::optional<Progress> progress;  // After the calibration's own.
      result = convert(checkpoint, output, options, context, [&](const ConvertProgress& step) {
        if (!progress) progress.emplace("converting", "MB", quiet);
        progress->update(static_cast<double>(step.bytes_done) / 1e6,
                         static_cast<double>(step.bytes_total) / 1e6,
                         fmt::format("{}/{} tensors", step.tensors_done, step.tensors_total));
      });
    }
    report(result);
    return kDone;
  }

  // Reads the requests now, so that what is wrong with them is said before anything is written.
  void prepare_calibration(const ComputeContext& context) {
    if (calibration == "none") return;
    const bool is_file = calibration != "default";
    const std::string text =
        is_file ? read_input(calibration, kInputLimitBytes) : std::string(built_in_calibration());
    options.calibration.sha256 = sha256_hex(as_bytes(text));
    options.calibration.measure = [this, &context, is_file, sha256 = options.calibration.sha256,
                                   requests = parse_request_lines(text, calibration)] {
      Engine engine(open_checkpoint(checkpoint),
                    {.threads = threads, .backend = "cpu", .cache_bytes = 0});
      Progress progress("calibrating", "requests", quiet);
      AskOptions asking;
      asking.media = MediaFlags().options_with_files(is_file ? calibration : std::string());
      asking.cancel = context.cancel;
      TextScales scales = measure_scales(
          engine, requests, asking, context, [&](std::size_t done, std::size_t total) {
            progress.update(static_cast<double>(done), static_cast<double>(total));
          });
      scales.calibration_sha256 = sha256;
      return scales;
    };
  }

  void report(const ConvertResult& result) const {
    double sum = 0;
    double worst = 0;
    for (const PalettizedTensor& tensor : result.manifest.palettized) {
      sum += tensor.relative_rmse;
      worst = std::max(worst, tensor.relative_rmse);
    }
    const std::size_t count = result.manifest.palettized.size();
    const double mean = count == 0 ? 0.0 : sum / static_cast<double>(count);
    if (as_json) {
      write_line(to_string(Json::object(
          {{"path", output},
           {"payload_bytes", result.payload_bytes},
           {"files", static_cast<std::uint64_t>(result.manifest.files.size())},
           {"palettized_tensors", static_cast<std::uint64_t>(count)},
           {"text_programs", static_cast<std::uint64_t>(result.manifest.programs.size())},
           {"kept_tensors", static_cast<std::uint64_t>(result.manifest.kept.size())},
           {"mean_relative_rmse", mean},
           {"largest_relative_rmse", worst},
           {"scales", scales_to_json(result.manifest.scales)},
           {"resumed", result.was_resumed}})));
    } else if (!quiet) {
      fmt::print(stderr,
                 "clefkit: {}: {:.1f} MB, {} tensors palettized ({}), relative RMSE {:.4f} in the "
                 "mean and {:.4f} at most, {} text programs; {}\n",
                 output, static_cast<double>(result.payload_bytes) / 1e6, count, palette, mean,
                 worst, result.manifest.programs.size(), scales_text(result.manifest.scales));
    }
  }
};

}  // namespace

void add_convert_command(CommandLine& line) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "convert", "Turn a checkpoint into a bundle with 6-bit weights, about half the size");
  app.add_option("checkpoint", command->checkpoint, "The checkpoint's directory")->required();
  app.add_option("-o,--output", command->output, "The bundle's directory, which must not exist")
      ->required();
  app.add_option("--palette", command->palette,
                 "optimal: least error; original: the recipe of the first published conversion; "
                 "grid8: exact in 8 bits, for --precision fast; fast: approximate")
      ->check(CLI::IsMember({"optimal", "original", "grid8", "fast"}))
      ->capture_default_str();
  app.add_option("--rounds", command->options.rounds,
                 "Rounds of Lloyd's algorithm (original, fast)")
      ->check(CLI::Range(std::size_t{0}, std::size_t{10000}))
      ->capture_default_str();
  app.add_option("--min-weights", command->options.min_weights,
                 "Linear layers with fewer weights stay FP16")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--plan", command->plan, "How layers are cut into programs: grouped or split")
      ->check(CLI::IsMember({"grouped", "split"}))
      ->capture_default_str();
  app.add_option("--program-budget", command->options.program_budget,
                 "Text programs at most (default: 127 less those of vision and 3 spare)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--calibration", command->calibration,
                 "System One bodies, one a line, on which the scales of the programs are measured; "
                 "default: three short ones; none: no scales")
      ->type_name("FILE.jsonl")
      ->capture_default_str();
  app.add_flag("--text-only", command->options.text_only, "Leave the vision encoder out");
  app.add_flag("--resume", command->resume,
               "Go on with a stopped conversion; that is what happens anyway when there is one");
  app.add_option("--repository", command->options.repository, "Recorded as the source");
  app.add_option("--revision", command->options.revision, "Recorded as the source");
  app.add_option("--threads", command->threads, "Number of threads (default: all processors)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", command->as_json, "Print a summary as JSON");
  app.add_flag("--quiet", command->quiet, "No progress and no summary on standard error");
  app.footer(
      "Files gather in <output>.partial and appear under their name when all are done. A stopped\n"
      "conversion is resumed by the same command.");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
