#include <filesystem>

#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/safetensors/safetensors_writer.h"

namespace clefkit::cli {
namespace {

void write_trace(const Trace& trace, const std::filesystem::path& path) {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, tensor] : trace) {
    const bool is_float = std::holds_alternative<std::vector<float>>(tensor.values);
    tensors.push_back({name, is_float ? DType::kF32 : DType::kI64, tensor.shape});
  }
  SafetensorsWriter writer(path, std::move(tensors));
  for (const TensorInfo& info : writer.layout().tensors) {
    std::visit(
        [&](const auto& values) {
          writer.write({reinterpret_cast<const std::uint8_t*>(values.data()),
                        values.size() * sizeof(values[0])});
        },
        trace.at(info.name).values);
  }
  writer.commit();
}

struct TraceCommand {
  ModelFlags model;
  EngineFlags engine;
  LimitFlags limits;
  MediaFlags media;
  RequestFlags request;
  std::string output;
  std::string only;
  bool as_json = false;
  bool quiet = false;

  int run() const {
    const InterruptScope interruptible;
    const Request asked = request.request();
    model.say_if_in_box(quiet);
    Engine engine_instance(open_model(model.directory()), engine.options(model));
    AskOptions options;
    options.limits = limits.limits();
    options.media = media.options_with_files(request.request_path);
    options.cancel = &interrupt_token();
    const Trace trace = engine_instance.trace(asked, options, only);
    if (trace.empty()) {
      throw_error(ErrorCode::kInvalidArgument, "--only", "no tensor's name starts with \"{}\"",
                  only);
    }
    write_trace(trace, output);
    if (as_json) {
      write_line(to_string(
          Json::object({{"path", output}, {"tensors", static_cast<std::uint64_t>(trace.size())}})));
    } else if (!quiet) {
      fmt::print(stderr, "clefkit: {}: {} tensors\n", output, trace.size());
    }
    return kDone;
  }
};

}  // namespace

void add_trace_command(CommandLine& line) {
  auto command = std::make_shared<TraceCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "trace", "Run a request and write intermediate tensors as safetensors, for parity work");
  command->model.add_to(app);
  command->request.add_to(app);
  app.add_option("-o,--output", command->output, "The file to write")->required();
  app.add_option("--only", command->only, "Only tensors whose names start with this");
  command->limits.add_to(app);
  command->media.add_to(app);
  command->engine.add_to(app);
  app.add_flag("--json", command->as_json, "Say what was written as JSON");
  app.add_flag("--quiet", command->quiet, "No notes on standard error");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
