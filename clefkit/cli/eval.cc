#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "clefkit/base/file_io.h"
#include "clefkit/bundle/fast_precision.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/eval_view.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/eval/evaluation.h"
#include "clefkit/eval/listed_skills.h"
#include "clefkit/eval/recorded_answers.h"
#include "clefkit/eval/report_html.h"

namespace clefkit::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kRequestsFile[] = "requests.jsonl";

// "clef-nano, exact on cpu".
std::string description_of(const Engine& engine) {
  return fmt::format("{}, {} on {}", engine.model().name, precision_name(engine.precision()),
                     engine.backend().name());
}

struct EvalCommand {
  std::string set_path;
  std::string against;
  std::string report;
  ModelFlags model;
  EngineFlags engine;
  EngineFlags engine_against;
  LimitFlags limits;
  MediaFlags media;
  std::optional<double> max_drift, max_mean_drift, min_accuracy, min_agreeing;
  bool as_json = false;
  bool quiet = false;

  struct Answers {
    std::string from;
    Probabilities probabilities;
  };

  int run() {
    const InterruptScope interruptible;
    if (fs::is_directory(set_path)) set_path = (fs::path(set_path) / kRequestsFile).string();
    const bool is_itself = against.empty() && !engine_against.precision.empty();
    if (is_itself) against = model.directory();
    const bool is_model = !against.empty() && fs::is_directory(against);
    check_flags(is_model);
    const DataSet set = parse_data_set(read_input(set_path, kInputLimitBytes),
                                       set_path == "-" ? std::string("standard input") : set_path);
    std::optional<Answers> other;
    if (!against.empty() && !is_model) {
      other = Answers{against,
                      parse_recorded_answers(read_input(against, kInputLimitBytes), against, set)};
    }
    check_expectations(set);

    const std::optional<std::set<std::string>> listed = listed_skills(model.directory());
    model.say_if_in_box(quiet);
    const Answers found = answer(model.directory(), engine, set);
    if (is_model) other = answer(against, engine_against, set);
    std::optional<Probabilities> compared;
    if (other) compared = std::move(other->probabilities);
    const Evaluation evaluation = evaluate(set, found.probabilities, compared, listed);
    const ReportFacts facts{.model = found.from,
                            .against = other ? other->from : "",
                            .problems = problems_of(evaluation)};
    if (!report.empty()) {
      write_file(report, report_html(set, evaluation, found.probabilities, compared, facts));
    }
    write_out(as_json ? to_string(to_json(evaluation, facts)) + "\n" : view(evaluation, facts));
    return facts.problems.empty() ? kDone : kCheckFailed;
  }

  // What a run must not find out after an hour.
  void check_flags(bool is_model) const {
    if (!against.empty() && !is_model && !against.ends_with(".jsonl")) {
      throw_error(ErrorCode::kInvalidArgument, "--against",
                  "{}, expected the directory of a model or a file of recorded answers, .jsonl",
                  against);
    }
    for (const auto& [name, bound] :
         {std::pair{"--max-drift", max_drift}, std::pair{"--max-mean-drift", max_mean_drift},
          std::pair{"--min-agreeing", min_agreeing}, std::pair{"--min-accuracy", min_accuracy}}) {
      if (bound && !(*bound >= 0 && *bound <= 1)) {
        throw_error(ErrorCode::kInvalidArgument, name, "{}, expected a number from 0 to 1", *bound);
      }
      if (bound && against.empty() && std::string_view(name) != "--min-accuracy") {
        throw_error(ErrorCode::kInvalidArgument, name, "expected --against with it");
      }
    }
    const fs::path folder = fs::path(report).parent_path();
    if (!folder.empty() && !fs::is_directory(folder)) {
      throw_error(ErrorCode::kInvalidArgument, "--report",
                  "no directory {}, expected it to be there", folder.string());
    }
  }

  void check_expectations(const DataSet& set) const {
    if (set.expectation_count() > 0) return;
    if (against.empty()) {
      throw_error(ErrorCode::kInvalidArgument, set_path,
                  "no line has \"expected\", expected some, or --against to compare answers with");
    }
    if (min_accuracy) {
      throw_error(ErrorCode::kInvalidArgument, "--min-accuracy",
                  "no line of {} has \"expected\", expected some with it", set_path);
    }
  }

  // One engine at a time: two of the largest models would not fit.
  Answers answer(const std::string& directory, const EngineFlags& flags, const DataSet& set) const {
    EngineOptions engine_options = flags.options(model);
    engine_options.threads = engine.threads;
    engine_options.chunk_tokens = engine.chunk_tokens;
    engine_options.allow_unproven_fast = true;
    Engine answering(open_model(directory), engine_options);
    Progress progress("answering with " + answering.model().name, "requests", quiet);
    AskOptions options;
    options.limits = limits.limits();
    options.media = media.options_with_files(set_path);
    options.cancel = &interrupt_token();
    return {description_of(answering),
            answer_all(answering, set.requests, options, [&](std::size_t done, std::size_t total) {
              progress.update(static_cast<double>(done), static_cast<double>(total));
            })};
  }

  std::vector<std::string> problems_of(const Evaluation& evaluation) const {
    std::vector<std::string> problems;
    const double accuracy = evaluation.whole.metrics.accuracy;
    if (min_accuracy && !(accuracy >= *min_accuracy)) {
      problems.push_back(
          fmt::format("accuracy {:.4f}, expected at least {}", accuracy, *min_accuracy));
    }
    if (!evaluation.drift) return problems;
    const Drift& drift = *evaluation.drift;
    if (max_drift && !(drift.largest <= *max_drift)) {
      problems.push_back(fmt::format("a probability differs by {:.5f}, expected at most {}",
                                     drift.largest, *max_drift));
    }
    if (max_mean_drift && !(drift.mean <= *max_mean_drift)) {
      problems.push_back(
          fmt::format("probabilities differ by {:.5f} in the mean, expected at most {}", drift.mean,
                      *max_mean_drift));
    }
    const double agreeing =
        static_cast<double>(drift.agreeing()) / static_cast<double>(drift.questions);
    if (min_agreeing && !(agreeing >= *min_agreeing)) {
      problems.push_back(fmt::format("{} of {} chosen answers agree ({:.4f}), expected at least {}",
                                     drift.agreeing(), drift.questions, agreeing, *min_agreeing));
    }
    return problems;
  }

  Json to_json(const Evaluation& evaluation, const ReportFacts& facts) const {
    Json json = Json::object({{"set", set_path}, {"model", facts.model}});
    json.set("against", facts.against.empty() ? Json() : Json(facts.against));
    Json figures = evaluation_to_json(evaluation, kFastMargin);
    std::ranges::move(figures.members(), std::back_inserter(json.members()));
    Json problems = Json::array();
    for (const std::string& problem : facts.problems) problems.push_back(problem);
    json.set("problems", std::move(problems));
    json.set("passed", facts.problems.empty());
    return json;
  }

  std::string view(const Evaluation& evaluation, const ReportFacts& facts) const {
    std::string text = fmt::format("{}: {} requests with {} questions, answered by {}{}\n\n",
                                   set_path, evaluation.requests, evaluation.questions, facts.model,
                                   facts.against.empty() ? "" : ", compared with " + facts.against);
    text += eval_view(evaluation, kFastMargin);
    for (const std::string& problem : facts.problems) text += "FAILED: " + problem + "\n";
    return text;
  }
};

void add_bounds(CLI::App& app, EvalCommand& command) {
  for (const auto& [name, target, text] :
       {std::tuple{"--max-drift", &command.max_drift,
                   "Fail (exit code 1) when a probability differs by more"},
        std::tuple{"--max-mean-drift", &command.max_mean_drift,
                   "Fail when they differ by more in the mean"},
        std::tuple{"--min-agreeing", &command.min_agreeing,
                   "Fail when a smaller part (0 to 1) of the chosen answers agrees"},
        std::tuple{"--min-accuracy", &command.min_accuracy,
                   "Fail when a smaller part of what is expected was chosen"}}) {
    app.add_option(name, *target, text);
  }
}

}  // namespace

void add_eval_command(CommandLine& line) {
  auto command = std::make_shared<EvalCommand>();
  command->engine_against.backend = "cpu";  // What others are compared with.
  CLI::App& app = *line.app.add_subcommand(
      "eval", "Answer a set of requests with expected answers, and say how good the answers are");
  app.add_option("SET", command->set_path,
                 "System One bodies with \"expected\", one a line (docs/eval.md), or a directory "
                 "with a requests.jsonl; - for standard input")
      ->required();
  command->model.add_to(app);
  app.add_option("--against", command->against,
                 "What to compare the answers with: the directory of a model, or recorded answers, "
                 "a .jsonl file");
  app.add_option("--report", command->report, "Write an HTML page that needs nothing else");
  add_bounds(app, *command);
  command->engine.add_to(app);
  app.add_option("--against-precision", command->engine_against.precision,
                 "What the other model computes with; without --against, the same model")
      ->check(is_precision());
  app.add_option("--against-backend", command->engine_against.backend, "What computes the other")
      ->check(is_backend())
      ->capture_default_str();
  command->limits.add_to(app);
  command->media.add_to(app);
  app.add_flag("--json", command->as_json, "Print as JSON");
  app.add_flag("--quiet", command->quiet, "No progress on standard error");
  app.footer(
      "Examples:\n"
      "  clefkit eval set.jsonl -m MODEL\n"
      "  clefkit eval set.jsonl -m BUNDLE --against CHECKPOINT --max-drift 0.065 --report r.html\n"
      "  clefkit eval set.jsonl -m BUNDLE --against recorded.jsonl --min-agreeing 1");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
