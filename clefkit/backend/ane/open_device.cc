#include "clefkit/backend/ane/open_device.h"

#include "clefkit/backend/ane/apple/apple_device.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/base/error.h"

namespace clefkit::ane {

std::unique_ptr<Device> open_device(std::string_view backend) {
  if (backend == "ane") return open_apple_device();
  if (backend == "simulator") backend = "simulator:ideal";
  if (!backend.starts_with("simulator:")) return nullptr;
  const auto profile = mil::numeric_profile(backend.substr(backend.find(':') + 1));
  if (!profile) {
    throw_error(ErrorCode::kInvalidArgument, "backend",
                "{}, expected simulator:ideal, :m1, :h15g, :m5 or :strict", backend);
  }
  return std::make_unique<SimulatorDevice>(*profile);
}

}  // namespace clefkit::ane
