#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/backend/ane/probes.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/json.h"

namespace clefkit {

// How far a device's answers are from the CPU's exact ones, on one short request.
struct Parity {
  std::size_t tokens = 0;
  // Root mean square of the difference as a part of that of the values, after each layer that ends
  // with a program.
  struct Layer {
    std::string name;  // "layers.3.output"
    double error = 0;
  };
  std::vector<Layer> layers{};
  double probability_difference = 0;  // The largest.
  bool same_answers = true;           // Of every question, the same option is the likeliest.
  double first_seconds = 0;           // Programs compiled and loaded included.
  double seconds_per_call = 0;        // Of 128 tokens, when all programs are loaded.
  std::uint64_t resident_bytes = 0;   // Of this process, afterwards.
};

struct SelfTest {
  std::string device{};  // "ane", "simulator:m5"
  std::vector<ane::ProbeResult> probes{};
  Spellings spellings{};  // Those that the probes found right, with which the model was run.
  std::string model{};    // Empty: none was given, and `parity` says nothing.
  Parity parity{};
  std::string problem{};  // The first thing that is wrong; empty: it has passed.

  bool passed() const { return problem.empty(); }
};

// A test passes when every operation of our programs is right in one of its spellings, and every
// probability is within this of the CPU's.
inline constexpr double kMostProbabilityDifference = 0.02;

struct SelfTestOptions {
  std::string backend = "ane";    // Or a simulator.
  std::filesystem::path model{};  // A bundle or checkpoint; empty: probes alone.
  const CancelToken* cancel = nullptr;
  std::function<void(std::size_t done, std::size_t total, std::string_view what)> progress{};
};

// Throws Error when there is no such device or the model cannot be opened; what the device does
// wrong is part of the result.
SelfTest run_self_test(const SelfTestOptions& options);

Json self_test_to_json(const SelfTest& test);

}  // namespace clefkit
