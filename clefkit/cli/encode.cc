#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/engine/media.h"
#include "clefkit/engine/record.h"
#include "clefkit/model/checkpoint.h"

namespace clefkit::cli {
namespace {

struct EncodeCommand {
  ModelFlags model;
  LimitFlags limits;
  MediaFlags media;
  RequestFlags request;
  bool as_json = false;

  // Every span on its own line: what it is, where, and its tokens as text.
  static std::string view(const Record& record, const Tokenizer& tokenizer) {
    std::string out =
        fmt::format("{} tokens, {} of the state\n", record.input_ids.size(), record.state_tokens);
    const auto add = [&](std::string_view name, const TokenSpan& span) {
      const std::span<const std::int32_t> ids(record.input_ids);
      out += fmt::format("{:>7} {:>7}  {}  ", span.begin, span.end, name);
      append_json_string(out, tokenizer.decode(ids.subspan(span.begin, span.end - span.begin)));
      out += '\n';
    };
    add("state", record.state);
    for (const RecordQuestion& question : record.questions) {
      add("question " + question.id, question.span);
      for (const RecordOption& option : question.options) add("  option " + option.id, option.span);
    }
    return out;
  }

  int run() const {
    const Request asked = request.request();
    model.say_if_in_box(false);
    const ModelFiles files = open_files(model.directory());
    const Tokenizer tokenizer(files.tokenizer_json, (files.directory / kTokenizerFile).string(),
                              model.pretokenizer_choice());
    const RecordLimits record_limits = limits.limits();
    const std::vector<PreparedMedia> prepared = prepare_media(
        files, asked, media.options_with_files(request.request_path), record_limits.max_tokens);
    const Record record = encode_record(tokenizer, asked, media_items(prepared), record_limits);
    write_out(as_json ? to_string(record_to_json(record)) + "\n" : view(record, tokenizer));
    return kDone;
  }
};

}  // namespace

void add_encode_command(CommandLine& line) {
  auto command = std::make_shared<EncodeCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "encode", "Show what the model will read: token ids and spans (needs no weights)");
  command->model.add_to(app);
  command->request.add_to(app);
  command->limits.add_to(app);
  command->media.add_to(app);
  app.add_flag("--json", command->as_json, "Print ids and spans as JSON");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
