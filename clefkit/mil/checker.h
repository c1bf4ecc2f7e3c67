#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/mil/program.h"

namespace clefkit::mil {

// Something in a program that a compiler or the Neural Engine would not take.
struct Problem {
  std::size_t line = 0;  // Of the text; 0 for a program that was not parsed, or for the whole.
  std::string name;      // Of the result, input or output it concerns; empty for the whole.
  std::string message;

  bool operator==(const Problem&) const = default;
};

// "12: y: conv: weight: …"
std::string to_string(const Problem& problem);

// What is known of the Neural Engine (ane.md 2.8).
struct CheckLimits {
  std::size_t max_rank = 5;
  std::int64_t max_channels = 65'536;  // Axis 1 of four or five.
  std::int64_t max_axis = 16'384;      // Any other.
  // 32K were refused somewhere; below 16,384 is advised, but an MLP of the 27B has 17,408.
  std::int64_t max_conv_outputs = 32'767;
  std::uint64_t max_weight_bytes = std::uint64_t{4} << 30;  // That one program points to.
};

// By the path that BLOBFILE gives.
using WeightFiles = std::map<std::string, const WeightBlobReader*>;

// Checks a program, whoever made it, against the operations that it uses: every name defined once,
// before its use, and used; arguments known and complete; types recomputed; BLOBFILE references
// that fit the weight files; the limits. Returns all problems in the order of the text; none: it
// holds.
std::vector<Problem> check_program(const Program& program, const WeightFiles& weights,
                                   const CheckLimits& limits = {});

// Throws Error(code) with the first problem and the number of others, if there is any.
void require_sound(const Program& program, const WeightFiles& weights, ErrorCode code,
                   const std::string& where, const CheckLimits& limits = {});

}  // namespace clefkit::mil
