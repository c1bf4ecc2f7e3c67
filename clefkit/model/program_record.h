#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clefkit {

// An input or output of a program, [1, channels, 1, tokens] or as its kind has it, FP16.
struct ProgramPort {
  std::string name;
  std::vector<std::uint64_t> shape;
};

// Of a program's text; those of the release have some hundred kilobytes.
inline constexpr std::uint64_t kMaxProgramBytes = std::uint64_t{64} << 20;

// A program of the text layers (docs/ane.md).
struct ProgramRecord {
  std::string name;  // "run-00-02", "attention-03@1024", "tail"
  std::string kind;  // "run", "attention", "mlp", "tail"
  std::vector<std::uint64_t> layers;
  std::uint64_t context = 0;  // Of an attention program; else 0, in JSON null.
  std::string mil, weights;   // Relative paths.
  std::vector<ProgramPort> inputs, outputs;
};

}  // namespace clefkit
