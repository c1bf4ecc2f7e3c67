#include "clefkit/eval/bench.h"

#include "clefkit/base/stopwatch.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"

namespace clefkit::cli {
namespace {

struct BenchCommand {
  ModelFlags model;
  EngineFlags engine;
  BenchOptions options;
  bool as_json = false;
  bool quiet = false;

  int run() {
    const InterruptScope interruptible;
    model.say_if_in_box(quiet);
    const Stopwatch stopwatch;
    EngineOptions engine_options = engine.options(model);
    engine_options.allow_unproven_fast = true;
    Engine engine_instance(open_model(model.directory()), engine_options);
    const double load_seconds = stopwatch.seconds();
    Json facts;
    {
      Progress progress("measuring", "runs", quiet);
      options.cancel = &interrupt_token();
      options.progress = [&](std::size_t done, std::size_t total) {
        progress.update(static_cast<double>(done), static_cast<double>(total));
      };
      facts = run_bench(engine_instance, options);
    }
    facts.members().insert(facts.members().begin(), {"load_seconds", load_seconds});
    facts.members().insert(facts.members().begin(), {"model", engine_instance.model().name});
    write_out(as_json ? to_string(facts) + "\n" : view(facts));
    return kDone;
  }

  static std::string view(const Json& facts) {
    const auto number = [](const Json& object, const char* key) {
      return object.find(key)->as_double().value_or(0);
    };
    std::string out = fmt::format(
        "{}: ready in {:.2f} s; backend {}, {} threads, median of {} runs\n\n",
        facts.find("model")->string(), number(facts, "load_seconds"),
        facts.find("backend")->string() + as_reason(facts.find("backend_reason")->string()),
        number(facts, "threads"), number(facts, "repeats"));
    for (const Json& length : facts.find("lengths")->items()) {
      out += fmt::format("  {:>6} tokens  {:>9.1f} tokens/s  {:>8.3f} s ", number(length, "tokens"),
                         number(length, "tokens_per_second"), number(length, "seconds"));
      for (const auto& [stage, seconds] : length.find("stage_seconds")->members()) {
        out += fmt::format("  {} {:.1f} %", stage,
                           100 * seconds.as_double().value_or(0) / number(length, "seconds"));
      }
      out += '\n';
    }
    if (const Json& vision = *facts.find("vision"); vision.is_object()) {
      out += fmt::format(
          "\n  a 512x512 picture: {:.2f} s, {:.0f} GFLOP/s, {:.0f} % of its linear layers' "
          "{:.0f}\n",
          number(vision, "seconds"), number(vision, "gflop_per_second"),
          100 * number(vision, "part_of_linear"), number(vision, "linear_gflop_per_second"));
    }
    const Json& memory = *facts.find("memory");
    return out + fmt::format("\n  memory: {:.0f} MB own, {:.0f} MB mapped, {:.0f} MB at the peak\n",
                             number(memory, "anonymous_bytes") / 1e6,
                             number(memory, "file_bytes") / 1e6,
                             number(memory, "peak_bytes") / 1e6);
  }
};

}  // namespace

void add_bench_command(CommandLine& line) {
  auto command = std::make_shared<BenchCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "bench", "Measure speed by length and stage, load time and memory on this machine");
  command->model.add_to(app);
  app.add_option("--tokens", command->options.token_counts, "Record lengths")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{64}, std::size_t{1} << 20))
      ->capture_default_str();
  app.add_option("--repeat", command->options.repeats, "Runs a length; the median is shown")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  command->engine.add_to(app);
  app.add_flag("--json", command->as_json, "Print as JSON");
  app.add_flag("--quiet", command->quiet, "No progress on standard error");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
