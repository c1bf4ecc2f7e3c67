#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clefkit/backend/ane/device.h"
#include "clefkit/backend/ane/program_set.h"
#include "clefkit/mil/program.h"

// Tiny programs that find out whether a device computes an operation, and what (ane.md 3.2, 8.4).
namespace clefkit::ane {

struct ProbePort {
  std::string name;
  mil::Shape shape;           // [1, channels, height, width]
  std::vector<float> values;  // Row by row, each exact in FP16; of an output, what is expected.
};

struct Probe {
  std::string name;  // Of the operation, and of its spelling: "silu by tanh".
  // Whether programs contain it as they are written. The others are second ways of spelling.
  bool is_needed = true;
  std::string mil;
  std::vector<std::uint8_t> weights{};
  std::vector<ProbePort> inputs, outputs;
  double tolerance = 0;  // Of |result - expected| / max(1, |expected|).
};

// All of them; expected values are computed here in float, without the simulator.
std::vector<Probe> all_probes();

struct ProbeResult {
  enum class Outcome { kRight, kWrong, kRefused, kFailed };
  std::string name;
  bool is_needed = true;
  Outcome outcome = Outcome::kRight;
  double difference = 0;  // The largest, measured as Probe::tolerance.
  std::string problem{};  // What was wrong, or the device's words.
};
std::string_view to_string(ProbeResult::Outcome outcome);

// Compiles, loads and runs one on its own. Throws nothing that the device may cause.
ProbeResult run_probe(Device& device, const Probe& probe, const ProgramSetOptions& options = {});

}  // namespace clefkit::ane
