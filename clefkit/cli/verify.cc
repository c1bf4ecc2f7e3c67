#include <optional>

#include "clefkit/bundle/fast_precision.h"
#include "clefkit/bundle/open_bundle.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/drift_text.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/eval/drift.h"
#include "clefkit/eval/file_checks.h"
#include "clefkit/eval/tensor_errors.h"

namespace clefkit::cli {
namespace {

constexpr std::size_t kShownTensors = 10;

struct VerifyCommand {
  std::string model;
  std::string against;
  std::string requests_path;
  std::string precision, against_precision;
  std::optional<double> max_drift, max_mean_drift;
  std::size_t threads = 0;
  std::size_t max_tokens = 16384;
  MediaFlags media;
  bool accept_fast = false;
  bool as_json = false;
  bool quiet = false;

  // What was found, and whether it passed.
  Json facts = Json::object();
  std::string text;
  bool passed = true;

  int run() {
    const InterruptScope interruptible;
    if (requests_path.empty() && (max_drift || max_mean_drift)) {
      throw Error(ErrorCode::kInvalidArgument, "--max-drift", "expected --requests with it");
    }
    for (const auto& [name, bound] :
         {std::pair{"--max-drift", max_drift}, std::pair{"--max-mean-drift", max_mean_drift}}) {
      if (bound && !(*bound >= 0)) {
        throw_error(ErrorCode::kInvalidArgument, name, "{}, expected a number from 0 on", *bound);
      }
    }
    if (accept_fast && (!is_bundle(model) || requests_path.empty() || !against.empty() ||
                        precision != "fast" || against_precision != "high")) {
      throw Error(ErrorCode::kInvalidArgument, "--accept-fast",
                  "expected a bundle alone with --precision fast --against-precision high "
                  "--requests FILE");
    }
    const std::vector<Request> requests = read_requests();
    facts.set("model", model);
    {
      Executor executor(threads);
      const ComputeContext context{.executor = executor, .cancel = &interrupt_token()};
      check_files(context);
      if (!against.empty()) compare_tensors(context);
    }
    if (!requests.empty()) compare_answers(requests);
    facts.set("passed", passed);
    write_out(as_json ? to_string(facts) + "\n" : text + (passed ? "passed\n" : "FAILED\n"));
    return passed ? kDone : kCheckFailed;
  }

  std::vector<Request> read_requests() const {
    if (requests_path.empty()) return {};
    return parse_request_lines(read_input(requests_path, kInputLimitBytes), requests_path);
  }

  void check_files(const ComputeContext& context) {
    if (!is_bundle(model)) {
      (void)open_model(model);  // A checkpoint has no checksums; its structure is checked.
      text += fmt::format("{}: a checkpoint: every tensor has its name, shape and type\n", model);
      return;
    }
    Progress progress("hashing", "MB", quiet);
    const auto checks =
        check_bundle_files(model, context, [&](std::uint64_t done, std::uint64_t all) {
          progress.update(static_cast<double>(done) / 1e6, static_cast<double>(all) / 1e6);
        });
    Json problems = Json::array();
    for (const FileCheck& check : checks) {
      if (check.problem.empty()) continue;
      problems.push_back(Json::object({{"path", check.path}, {"problem", check.problem}}));
      text += fmt::format("  {}: {}\n", check.path, check.problem);
    }
    text = fmt::format("{}: {} files, {} wrong\n", model, checks.size(), problems.items().size()) +
           text;
    facts.set("files", static_cast<std::uint64_t>(checks.size()));
    if (problems.items().empty()) {
      (void)open_model(model);
      return;
    }
    // What is wrong must not be computed with. A person sees the whole list first.
    if (!as_json) write_out(text);
    const Json& first = problems.items().front();
    throw_error(ErrorCode::kCorruptData, model + "/" + first.find("path")->string(), "{}{}",
                first.find("problem")->string(),
                problems.items().size() > 1
                    ? fmt::format(" (and {} more files are wrong)", problems.items().size() - 1)
                    : "");
  }

  void compare_tensors(const ComputeContext& context) {
    Progress progress("comparing", "tensors", quiet);
    std::vector<TensorError> errors = tensor_errors(
        open_model(model), open_model(against), context, [&](std::size_t done, std::size_t total) {
          progress.update(static_cast<double>(done), static_cast<double>(total));
        });
    facts.set("against", against);
    Json all = Json::array();
    for (const TensorError& error : errors) {
      all.push_back(Json::object({{"name", error.name},
                                  {"stored", error.stored},
                                  {"relative_rmse", error.relative_rmse},
                                  {"max_abs_error", error.max_abs_error}}));
    }
    facts.set("tensors", std::move(all));
    std::ranges::stable_sort(errors, std::greater<>(), &TensorError::relative_rmse);
    const auto exact = std::ranges::count(errors, 0.0, &TensorError::relative_rmse);
    text += fmt::format("against {}: {} of {} tensors equal; the largest errors:\n", against, exact,
                        errors.size());
    for (std::size_t i = 0; i < std::min(kShownTensors, errors.size()); ++i) {
      text += fmt::format("  {:<62} {:>5} {:>9.5f} {:>10.5f}\n", errors[i].name, errors[i].stored,
                          errors[i].relative_rmse, errors[i].max_abs_error);
    }
  }

  Probabilities answer(const std::string& directory, const std::string& at,
                       const std::vector<Request>& requests) {
    EngineFlags flags;
    flags.threads = threads;
    flags.precision = at;
    EngineOptions engine_options = flags.options({});
    engine_options.allow_unproven_fast = true;
    Engine engine(open_model(directory), engine_options);
    Progress progress("answering with " + engine.model().name, "requests", quiet);
    AskOptions options;
    options.limits.max_tokens = max_tokens;
    options.media = media.options_with_files(requests_path);
    options.cancel = &interrupt_token();
    return answer_all(engine, requests, options, [&](std::size_t done, std::size_t total) {
      progress.update(static_cast<double>(done), static_cast<double>(total));
    });
  }

  void compare_answers(const std::vector<Request>& requests) {
    const std::string& other = against.empty() ? model : against;
    const Drift drift = compare_probabilities(requests, answer(model, precision, requests),
                                              answer(other, against_precision, requests));
    facts.set("drift", drift_to_json(drift, kFastMargin));
    text += drift_text(drift, kFastMargin);
    if (max_drift && drift.largest > *max_drift) passed = false;
    if (max_mean_drift && drift.mean > *max_mean_drift) passed = false;
    if (accept_fast) judge_fast(drift);
  }

  // A measurement that fails also takes back what an earlier one allowed.
  void judge_fast(const Drift& drift) {
    const FastPrecision measured{.questions = drift.questions,
                                 .mean_drift = drift.mean,
                                 .largest_drift = drift.largest,
                                 .changed_beyond_margin = drift.changed_beyond(kFastMargin)};
    const bool accepted = is_accurate_enough(measured);
    if (accepted) {
      write_fast_precision(model, measured);
    } else {
      remove_fast_precision(model);
      passed = false;
    }
    facts.set("fast_accepted", accepted);
    text += fmt::format(
        "fast: {} for this bundle (wanted: {} questions or more, a mean of at most {}, no answer "
        "changed with a margin above {})\n",
        accepted ? "offered from now on" : "not offered", kFastMinQuestions, kFastMaxMeanDrift,
        kFastMargin);
  }
};

}  // namespace

void add_verify_command(CommandLine& line) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App& app = *line.app.add_subcommand("verify",
                                           "Check a bundle's checksums and programs; compare a "
                                           "model's weights and answers with another's");
  app.add_option("model", command->model, "The model's directory")->required();
  app.add_option(
      "--against", command->against,
      "Another model of the same architecture, or the same one: error per tensor, and with "
      "--requests how far answers moved");
  app.add_option("--requests", command->requests_path, "System One bodies, one a line");
  for (const auto& [name, target, text] :
       {std::tuple{"--precision", &command->precision, "What the model computes with"},
        std::tuple{"--against-precision", &command->against_precision,
                   "What the other computes with"}}) {
    app.add_option(name, *target, text)->check(CLI::IsMember({"exact", "high", "fast"}));
  }
  app.add_option("--max-drift", command->max_drift,
                 "Fail (exit code 1) when a probability differs by more");
  app.add_option("--max-mean-drift", command->max_mean_drift,
                 "Fail when they differ by more in the mean");
  app.add_flag(
      "--accept-fast", command->accept_fast,
      "Offer --precision fast for this bundle if the comparison of fast with high allows "
      "it: a mean of at most 0.003 on 20 questions or more, and no answer changed that had "
      "a margin above 0.02. Exit code 1, and fast is not offered, if it does not");
  app.add_option("--max-tokens", command->max_tokens, "Longest record")->capture_default_str();
  app.add_option("--threads", command->threads, "Number of threads (default: all processors)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", command->as_json, "Print as JSON");
  app.add_flag("--quiet", command->quiet, "No progress on standard error");
  app.footer(
      "Examples:\n"
      "  clefkit verify BUNDLE\n"
      "  clefkit verify BUNDLE --against CHECKPOINT --requests set.jsonl --max-drift 0.065\n"
      "  clefkit verify BUNDLE --precision fast --against-precision high --requests set.jsonl "
      "--accept-fast");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
