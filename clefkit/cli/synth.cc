#include "clefkit/synth/synth.h"

#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/synth/presets.h"

namespace clefkit::cli {
namespace {

struct SynthCommand {
  std::string output;
  std::string preset;
  std::string config_path;
  std::string head_config_path;
  std::string tokenizer_path;
  std::uint64_t seed = 0;
  std::size_t threads = 0;
  bool as_json = false;
  bool quiet = false;

  ConfigTexts config() const {
    if (preset.empty() == config_path.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "synth", "expected one of --preset and --config");
    }
    if (!preset.empty()) return preset_config(preset);
    return {
        read_input(config_path, kInputLimitBytes),
        head_config_path.empty() ? std::string() : read_input(head_config_path, kInputLimitBytes)};
  }

  int run() const {
    const InterruptScope interruptible;
    SynthOptions options;
    options.config = config();
    options.tokenizer = tokenizer_path;
    options.seed = seed;
    options.output = output;
    Executor executor(threads);
    std::uint64_t bytes = 0;
    {
      Progress progress("writing", "MB", quiet);
      options.progress = [&](std::uint64_t done, std::uint64_t total) {
        bytes = total;
        progress.update(static_cast<double>(done) / 1e6, static_cast<double>(total) / 1e6);
      };
      write_synthetic_checkpoint({executor, &interrupt_token()}, options);
    }
    if (as_json) {
      write_line(
          to_string(Json::object({{"path", output}, {"weight_bytes", bytes}, {"seed", seed}})));
    } else if (!quiet) {
      fmt::print(stderr, "clefkit: {}: a checkpoint with random weights, {:.1f} MB\n", output,
                 static_cast<double>(bytes) / 1e6);
    }
    return kDone;
  }
};

}  // namespace

void add_synth_command(CommandLine& line) {
  auto command = std::make_shared<SynthCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "synth", "Write a checkpoint with random weights in the release's layout");
  app.add_option("output", command->output, "The directory to make")->required();
  app.add_option("--preset", command->preset,
                 "clef-flash (19 GB), clef (55 GB), nano (4 M parameters) or tiny (under 1 M)")
      ->check(CLI::IsMember(preset_names()));
  app.add_option("--config", command->config_path, "A config.json to take the sizes from");
  app.add_option("--head-config", command->head_config_path,
                 "With --config, a joint_head_config.json (default: the release's proportions)");
  app.add_option("--tokenizer", command->tokenizer_path,
                 "A tokenizer.json to copy (default: one token a byte)");
  app.add_option("--seed", command->seed, "Same seed, same bytes")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--threads", command->threads, "Number of threads (default: all processors)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", command->as_json, "Say what was written as JSON");
  app.add_flag("--quiet", command->quiet, "No progress and no notes on standard error");
  app.footer("Answers of such a model mean nothing; it is for trying, testing and measuring.");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
