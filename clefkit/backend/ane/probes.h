#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clefkit/backend/ane/device.h"
#include "clefkit/backend/ane/program_set.h"
#include "clefkit/mil/program.h"
#include "clefkit/programs/spellings.h"

// Tiny programs that find out whether a device computes an operation, and what (ane.md 3.2, 8.4).
namespace clefkit::ane {

struct ProbePort {
  std::string name;
  mil::Shape shape;           // [1, channels, height, width]
  std::vector<float> values;  // Row by row, each exact in FP16; of an output, what is expected.
};

struct Probe {
  std::string name;  // Of the operation, and of its spelling: "silu by tanh".
  // The probe of the first way, when this is a second way of spelling (programs/spellings.h) and so
  // only needed where the first is not right.
  std::string instead_of{};
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
  std::string instead_of{};  // As of the probe.
  Outcome outcome = Outcome::kRight;
  double difference = 0;  // The largest, measured as Probe::tolerance.
  std::string problem{};  // What was wrong, or the device's words.

  bool is_first_way() const { return instead_of.empty(); }
};
std::string_view to_string(ProbeResult::Outcome outcome);

// Compiles, loads and runs one on its own. Throws nothing that the device may cause.
ProbeResult run_probe(Device& device, const Probe& probe, const ProgramSetOptions& options = {});

// How programs must be spelled for a device with these results: the second way of what is not right
// the first.
struct FoundSpellings {
  Spellings spellings{};
  std::string problem{};  // The first operation that is right in neither way; empty: none.
};
FoundSpellings find_spellings(const std::vector<ProbeResult>& results);

}  // namespace clefkit::ane
