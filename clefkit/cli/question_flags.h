#pragma once

#include <string>
#include <string_view>

#include "clefkit/base/json.h"

namespace clefkit::cli {

// The short form of a question on the command line:
//
//   --noul   "ID=INSTRUCTIONS"
//   --choice "ID=OPTION,OPTION,…"      --choice "ID: INSTRUCTIONS=OPTION: description|OPTION|…"
//   --score  "ID=LEVEL,LEVEL,…"        --score  "ID: INSTRUCTIONS=LEVEL|LEVEL|…"
//
// Options are cut at `|` when there is one, else at commas; a backslash before `,` `|` `:` `=` or
// `\` makes it an ordinary character. Returns the id and the question as it stands in a request.
// Throws Error(kInvalidArgument) with the flag's name.
Json::Member parse_noul_flag(std::string_view text);
Json::Member parse_choice_flag(std::string_view text);
Json::Member parse_score_flag(std::string_view text);

}  // namespace clefkit::cli
