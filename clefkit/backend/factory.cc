#include "clefkit/backend/factory.h"

#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"

namespace clefkit {

std::unique_ptr<Backend> make_backend(std::string_view name, const Model& model,
                                      Precision precision) {
  if (name == "auto" || name == "cpu") return std::make_unique<cpu::CpuBackend>(model, precision);
  if (name == "simulator") name = "simulator:ideal";
  if (name.starts_with("simulator:")) {
    const auto profile = mil::numeric_profile(name.substr(name.find(':') + 1));
    if (!profile) {
      throw_error(ErrorCode::kInvalidArgument, "backend",
                  "{}, expected simulator:ideal, :m1, :h15g, :m5 or :strict", name);
    }
    // One program a layer, so that a trace shows every layer.
    return std::make_unique<ane::ProgramBackend>(
        model, std::make_unique<ane::SimulatorDevice>(*profile), PlanKind::kSplit,
        std::make_unique<cpu::CpuBackend>(model, precision));
  }
  if (name == "ane") {
    throw_error(ErrorCode::kUnsupported, "backend",
                "ane is not in this build, expected auto, cpu or simulator");
  }
  throw_error(ErrorCode::kInvalidArgument, "backend", "{}, expected auto, cpu, ane or simulator",
              name);
}

}  // namespace clefkit
