#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "clefkit/base/lines.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/text/tokenizer.h"

namespace clefkit::cli {
namespace {

struct TokenizeCommand {
  ModelFlags model;
  bool decode = false;
  bool by_line = false;

  static Json parse(std::string_view text, const std::string& where) {
    return parse_json(text, where,
                      {.bytes = kInputLimitBytes, .error = ErrorCode::kInvalidArgument});
  }

  static std::string ids_to_json(const std::vector<std::int32_t>& ids) {
    return fmt::format("[{}]", fmt::join(ids, ","));
  }

  static std::vector<std::int32_t> ids_from_json(const Json& value, const std::string& where) {
    std::vector<std::int32_t> ids;
    if (!value.is_array()) {
      throw_error(ErrorCode::kInvalidArgument, where, "found {}, expected an array of token ids",
                  value.kind_name());
    }
    for (const Json& item : value.items()) {
      const auto id = item.as_int64();
      if (!id || *id < 0 || *id > INT32_MAX) {
        throw_error(ErrorCode::kInvalidArgument, where, "found {}, expected a token id",
                    to_string(item));
      }
      ids.push_back(static_cast<std::int32_t>(*id));
    }
    return ids;
  }

  std::string convert_line(const Tokenizer& tokenizer, std::string_view line,
                           const std::string& where) const {
    const Json value = parse(line, where);
    if (decode) return to_string(Json(tokenizer.decode(ids_from_json(value, where))));
    if (!value.is_string()) {
      throw_error(ErrorCode::kInvalidArgument, where, "found {}, expected a JSON string",
                  value.kind_name());
    }
    return ids_to_json(tokenizer.encode(value.string()));
  }

  int run() const {
    model.say_if_in_box(false);
    const ModelFiles files = open_model_files(model.directory());
    const Tokenizer tokenizer(files.tokenizer_json, (files.directory / kTokenizerFile).string(),
                              model.pretokenizer_choice());
    const std::string text = read_stdin(kInputLimitBytes);
    if (!by_line) {
      write_out(
          decode ? tokenizer.decode(ids_from_json(parse(text, "standard input"), "standard input"))
                 : ids_to_json(tokenizer.encode(text)) + "\n");
      return kDone;
    }
    for (const Line& line : filled_lines(text)) {
      write_line(convert_line(tokenizer, line.text, fmt::format("line {}", line.number)));
    }
    return kDone;
  }
};

}  // namespace

void add_tokenize_command(CommandLine& line) {
  auto command = std::make_shared<TokenizeCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "tokenize", "Text on standard input to a JSON list of token ids (needs no weights)");
  command->model.add_to(app);
  app.add_flag("--decode", command->decode, "The other way: ids to text");
  app.add_flag("--jsonl", command->by_line, "A JSON string a line in, a list of ids a line out");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
