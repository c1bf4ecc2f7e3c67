#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "clefkit/text/tokenizer.h"

namespace clefkit::cli {

// -m, and how its texts are tokenized.
struct ModelFlags {
  std::string model;  // Also from CLEFKIT_MODEL; empty: none was named.
  std::string pretokenizer;

  void add_to(CLI::App& app);
  // The one named, else the small model that comes with the program. Throws Error(kInvalidArgument)
  // when there is neither.
  std::string directory() const;
  bool is_in_box() const { return model.empty(); }
  // A line on standard error where nobody named the model that will answer, unless `quiet`.
  void say_if_in_box(bool quiet) const;
  Pretokenizer pretokenizer_choice() const;
};

}  // namespace clefkit::cli
