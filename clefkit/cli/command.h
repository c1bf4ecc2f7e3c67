#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "clefkit/base/error.h"
#include "clefkit/base/executor.h"

namespace clefkit::cli {

// Exit codes of the command line, fixed by docs/cli.md.
enum ExitCode : int {
  kDone = 0,
  kCheckFailed = 1,
  kBadRequest = 2,
  kBadModel = 3,
  kNotAvailable = 4,
  kDefect = 70,
  kInterrupted = 130,
};

ExitCode exit_code_of(ErrorCode code);

// Set by the first Ctrl-C while an InterruptScope lives; elsewhere Ctrl-C ends the process at once.
CancelToken& interrupt_token();
void install_interrupt_handler();

// Marks code that reads interrupt_token() and cleans up after itself.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

// A command adds itself to the program; `run` is called when it was chosen and returns the exit
// code. One file per command, each with one of these.
struct CommandLine {
  CLI::App& app;
  std::function<int()> run;
};

void add_ask_command(CommandLine& line);
void add_encode_command(CommandLine& line);
void add_tokenize_command(CommandLine& line);
void add_trace_command(CommandLine& line);
void add_synth_command(CommandLine& line);
void add_convert_command(CommandLine& line);
void add_export_command(CommandLine& line);
void add_inspect_command(CommandLine& line);
void add_verify_command(CommandLine& line);
void add_eval_command(CommandLine& line);
void add_bench_command(CommandLine& line);
void add_doctor_command(CommandLine& line);
void add_serve_command(CommandLine& line);
void add_clients_command(CommandLine& line);

}  // namespace clefkit::cli
