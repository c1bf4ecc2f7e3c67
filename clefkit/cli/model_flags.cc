#include "clefkit/cli/model_flags.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "clefkit/base/error.h"
#include "clefkit/base/program_data.h"

namespace clefkit::cli {
namespace {

// Under the program's data, as models/nano/ of the source tree is put there.
constexpr char kModelInBox[] = "models/clef-nano";

}  // namespace

void ModelFlags::add_to(CLI::App& app) {
  app.add_option("-m,--model", model,
                 "Directory of a checkpoint or bundle (default: the small model that comes with "
                 "clefkit)")
      ->envname("CLEFKIT_MODEL");
  app.add_option("--pretokenizer", pretokenizer,
                 "Pattern that cuts text before BPE: a (as trained, the file's own) or b (newer "
                 "transformers); they differ at combining marks")
      ->check(CLI::IsMember({"a", "b"}));
}

std::string ModelFlags::directory() const {
  if (!model.empty()) return model;
  const std::optional<std::filesystem::path> in_box = find_program_data(kModelInBox);
  if (!in_box) {
    throw Error(ErrorCode::kInvalidArgument, "--model",
                "none given and no model beside the program, expected -m DIRECTORY or the variable "
                "CLEFKIT_MODEL");
  }
  return in_box->string();
}

void ModelFlags::say_if_in_box(bool quiet) const {
  if (!is_in_box() || quiet) return;
  const std::string name = std::filesystem::path(directory()).filename().string();
  fmt::print(stderr,
             "clefkit: no -m given: {}, the small model in the box, is taken (what it can do: "
             "models/nano/README.md)\n",
             name);
}

Pretokenizer ModelFlags::pretokenizer_choice() const {
  if (pretokenizer == "a") return Pretokenizer::kPatternA;
  if (pretokenizer == "b") return Pretokenizer::kPatternB;
  return Pretokenizer::kFile;
}

}  // namespace clefkit::cli
