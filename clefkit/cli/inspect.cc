#include "clefkit/eval/inspect.h"

#include "clefkit/bundle/manifest.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/output.h"
#include "clefkit/cli/scales_text.h"

namespace clefkit::cli {
namespace {

std::uint64_t integer(const Json& object, const char* key) {
  return object.find(key)->as_uint64().value_or(0);
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string text_of(const Json& value) {
  return value.is_string() ? value.string() : to_string(value);
}

std::string view(const Json& facts) {
  const Json& architecture = *facts.find("architecture");
  std::string out = fmt::format("{}: a {}, {:.2f} billion parameters, {:.1f} MB of weights\n\n",
                                facts.find("name")->string(), facts.find("kind")->string(),
                                static_cast<double>(integer(facts, "parameters")) / 1e9,
                                megabytes(integer(facts, "weight_bytes")));
  for (const auto& [key, value] : architecture.members()) {
    out += fmt::format("  {:<26} {}\n", key, text_of(value));
  }
  out += fmt::format("\n  {:<26} {:>6} {:>8} {:>16} {:>12}\n", "tensors", "stored", "count",
                     "parameters", "MB");
  for (const Json& row : facts.find("classes")->items()) {
    out += fmt::format("  {:<26} {:>6} {:>8} {:>16} {:>12.1f}\n", row.find("class")->string(),
                       row.find("stored")->string(), integer(row, "tensors"),
                       integer(row, "parameters"), megabytes(integer(row, "bytes")));
  }
  const Json& bundle = *facts.find("bundle");
  if (bundle.is_null()) return out;
  out += '\n';
  for (const auto& [key, value] : bundle.members()) {
    if (value.is_array()) continue;
    out +=
        fmt::format("  {:<26} {}\n", key,
                    key == "scales" ? scales_text(scales_from_json(value, key)) : text_of(value));
  }
  out += fmt::format("\n  {:<62} {:>8} {:>10}\n", "largest errors", "rel. RMSE", "max. abs.");
  for (const Json& tensor : bundle.find("worst_tensors")->items()) {
    out += fmt::format("  {:<62} {:>9.5f} {:>10.5f}\n", tensor.find("name")->string(),
                       *tensor.find("relative_rmse")->as_double(),
                       *tensor.find("max_abs_error")->as_double());
  }
  return out;
}

}  // namespace

void add_inspect_command(CommandLine& line) {
  struct Flags {
    std::string model;
    bool as_json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& app = *line.app.add_subcommand(
      "inspect", "Show what a checkpoint or bundle holds: architecture, sizes, precision, errors");
  app.add_option("model", flags->model, "The model's directory")->required();
  app.add_flag("--json", flags->as_json, "Print as JSON");
  app.callback([flags, &line] {
    line.run = [flags] {
      const Json facts = inspect_model(open_model(flags->model));
      write_out(flags->as_json ? to_string(facts) + "\n" : view(facts));
      return kDone;
    };
  });
}

}  // namespace clefkit::cli
