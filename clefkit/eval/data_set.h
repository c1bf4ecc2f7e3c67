#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/questions/request.h"

namespace clefkit {

// What a line of a data set says beside its request.
struct Case {
  std::size_t line = 0;  // From 1.
  std::string name;      // Empty: it has none.
  // By question: the index of the option that is right, where one is expected.
  std::vector<std::optional<std::size_t>> expected;
  std::vector<std::string> skills;  // By question; empty: of none.
};

// Requests with the answers they should get: one JSON object a line, a System One body and
//   "name"      what to call it, a string
//   "expected"  from question to answer: a noul's true or false, a choice's option, a score's level
//               as a number from 0; a question that has none, or null, expects nothing
//   "skills"    from question to the skill it tests
// docs/eval.md is its manual.
struct DataSet {
  std::string source;             // The file's name, for messages.
  std::vector<Request> requests;  // Their places say line and name.
  std::vector<Case> cases;        // One for each of them.

  std::size_t question_count() const;
  std::size_t expectation_count() const;
};

// Throws Error(kInvalidArgument) with the line and the member's place. `source` names the file.
DataSet parse_data_set(std::string_view text, const std::string& source);

}  // namespace clefkit
