#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "clefkit/base/json.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/output.h"

namespace clefkit::cli {
namespace {

int report_on_stderr(const Error& error) {
  // Nobody may be there to read it; the exit code says it all the same.
  try {
    fmt::print(stderr, "clefkit: {}\n", error.what());
  } catch (const std::exception&) {
  }
  return exit_code_of(error.code());
}

int report(const Error& error, bool as_json) {
  if (!as_json) return report_on_stderr(error);
  try {
    Json body = Json::object();
    body.set("error", Json::object({{"code", to_string(error.code())},
                                    {"message", error.message()},
                                    {"where", error.where()}}));
    write_line(to_string(body));
  } catch (const Error&) {
    return report_on_stderr(error);  // Standard output is what failed.
  }
  return exit_code_of(error.code());
}

// CLI11 throws for wrong flags and for --help alike.
int report_parse(const CLI::App& app, const CLI::ParseError& error, bool as_json) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  return report(Error(ErrorCode::kInvalidArgument, "", std::string(error.what()) + " (see --help)"),
                as_json);
}

int run(int argc, char** argv) {
  CLI::App app{
      "clefkit answers yes/no, choice and score questions about text and JSON with Clef models,\n"
      "on this machine. Nothing is sent anywhere."};
  app.set_version_flag("--version", "clefkit " CLEFKIT_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Try:  clefkit ask --state \"My card was charged twice.\" "
      "--noul \"refund=Does the customer want money back?\"\n"
      "Exit codes: 0 done, 1 a check failed, 2 wrong request or flags, 3 wrong model files,\n"
      "4 not available here, 70 a defect of ours, 130 interrupted.");
  app.failure_message(CLI::FailureMessage::simple);

  CommandLine line{app, {}};
  add_ask_command(line);
  add_encode_command(line);
  add_tokenize_command(line);
  add_trace_command(line);
  add_synth_command(line);
  add_convert_command(line);
  add_export_command(line);
  add_inspect_command(line);
  add_verify_command(line);
  add_eval_command(line);
  add_bench_command(line);
  add_doctor_command(line);
  add_serve_command(line);
  add_clients_command(line);

  bool as_json = false;
  for (int i = 1; i < argc; ++i) as_json = as_json || std::strcmp(argv[i], "--json") == 0;
  try {
    // Of a misspelt command CLI11 only says that one is required.
    const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
      throw_error(ErrorCode::kInvalidArgument, "", "no command \"{}\", expected one of --help",
                  argv[1]);
    }
    app.parse(argc, argv);
    return line.run();
  } catch (const CLI::ParseError& error) {
    return report_parse(app, error, as_json);
  } catch (const Error& error) {
    return report(error, as_json);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorCode::kUnavailable, "", "out of memory"), as_json);
  } catch (const std::exception& error) {
    return report(Error(ErrorCode::kInternal, "", std::string("unexpected: ") + error.what()),
                  as_json);
  }
}

}  // namespace
}  // namespace clefkit::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is then a write error with a message.
  clefkit::cli::install_interrupt_handler();
  return clefkit::cli::run(argc, argv);
}
