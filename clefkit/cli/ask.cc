#include <string_view>

#include "clefkit/base/lines.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/answer_view.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"

namespace clefkit::cli {
namespace {

struct AskCommand {
  ModelFlags model;
  EngineFlags engine;
  LimitFlags limits;
  MediaFlags media;
  AnswerFlags answers;
  RequestFlags request;
  std::string states_path;
  bool as_json = false;
  bool quiet = false;

  AskOptions options() const {
    AskOptions options;
    options.limits = limits.limits();
    options.media = media.options_with_files(request.request_path);
    options.answers = answers.options();
    options.cancel = &interrupt_token();
    options.use_cache = !states_path.empty();  // One request has nobody to share with.
    return options;
  }

  int run() const {
    const InterruptScope interruptible;
    return states_path.empty() ? answer_one() : answer_states();
  }

  int answer_one() const {
    const Request asked = request.request();
    model.say_if_in_box(quiet);
    Engine engine_instance(open_model(model.directory()), engine.options(model));
    Json body;
    {
      Progress progress("reading", "tokens", quiet);
      AskOptions ask_options = options();
      ask_options.progress = [&](std::size_t done, std::size_t total) {
        progress.update(static_cast<double>(done), static_cast<double>(total));
      };
      body = response_to_json(engine_instance.ask(asked, ask_options));
    }
    if (as_json) {
      write_line(to_string(body));
      return kDone;
    }
    write_out(answer_view(body, use_colour()));
    const Json& usage = *body.find("usage");
    if (const Json* dropped = usage.find("x_dropped_state_tokens"); dropped != nullptr && !quiet) {
      fmt::print(stderr, "clefkit: the state's last {} tokens were dropped to fit --max-tokens\n",
                 dropped->number().text);
    }
    return kDone;
  }

  // One line of JSON a state: whatever is wrong with a line is that line's own error.
  Json answer_line(Engine& engine_instance, std::size_t number, std::string_view line) const {
    Json out = Json::object({{"line", static_cast<std::uint64_t>(number)}});
    try {
      Json state = parse_json(line, fmt::format("line {}", number),
                              {.bytes = kInputLimitBytes,
                               .duplicates = DuplicateKeys::kLastWins,
                               .error = ErrorCode::kInvalidArgument});
      const Response response =
          engine_instance.ask(request.request_with_state(std::move(state)), options());
      Json body = response_to_json(response);
      for (Json::Member& member : body.members()) out.members().push_back(std::move(member));
    } catch (const Error& error) {
      // Only what the line itself caused: a broken model or Ctrl-C ends the run.
      if (exit_code_of(error.code()) != kBadRequest) throw;
      out.set("error", Json::object({{"code", to_string(error.code())},
                                     {"message", error.message()},
                                     {"where", error.where()}}));
    }
    return out;
  }

  int answer_states() const {
    const std::string text = read_input(states_path, kInputLimitBytes);
    (void)request.request_with_state(
        "");  // The questions' own mistakes, before the model is opened.
    model.say_if_in_box(quiet);
    Engine engine_instance(open_model(model.directory()), engine.options(model));
    Progress progress("answering", "lines", quiet);
    const std::vector<Line> lines = filled_lines(text);
    const std::size_t last = lines.empty() ? 0 : lines.back().number;
    std::size_t failed = 0;
    for (const Line& line : lines) {
      const Json out = answer_line(engine_instance, line.number, line.text);
      failed += out.find("error") != nullptr ? 1 : 0;
      write_line(to_string(out));
      progress.update(static_cast<double>(line.number), static_cast<double>(last));
    }
    if (failed > 0) {
      fmt::print(stderr, "clefkit: {}: {} of {} lines got an error instead of an answer\n",
                 states_path, failed, last);
    }
    return kDone;
  }
};

}  // namespace

void add_ask_command(CommandLine& line) {
  auto command = std::make_shared<AskCommand>();
  CLI::App& app = *line.app.add_subcommand("ask", "Answer questions about a state");
  command->model.add_to(app);
  command->request.add_to(app);
  app.add_option("--states", command->states_path,
                 "Many states: a file of JSON values, one a line (- for standard input); one JSON "
                 "object a line comes out")
      ->excludes("--request")
      ->excludes("--state")
      ->excludes("--state-file")
      ->excludes("--state-json");
  command->limits.add_to(app);
  command->media.add_to(app);
  command->answers.add_to(app);
  command->engine.add_to(app);
  command->engine.add_cache_to(app);
  app.add_flag("--json", command->as_json, "Print the System One response body");
  app.add_flag("--quiet", command->quiet, "No progress and no notes on standard error");
  app.footer(
      "Examples:\n"
      "  clefkit ask -m MODEL --state-file mail.txt --noul \"refund=Does the customer want money "
      "back?\"\n"
      "  clefkit ask -m MODEL --state-json '{\"amount\": 1250.0}' --choice "
      "\"team: Who handles this?=billing: Invoices|technical\" --json\n"
      "  clefkit ask -m MODEL --states tickets.jsonl --score \"anger=calm,annoyed,angry\" > "
      "answers.jsonl");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
