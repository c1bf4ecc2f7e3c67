#pragma once

#include <memory>

#include "clefkit/backend/ane/device.h"
#include "clefkit/mil/numerics.h"

namespace clefkit::ane {

// Memory of the process.
class PlainSurface final : public Surface {
 public:
  explicit PlainSurface(std::uint64_t bytes);
  std::span<std::uint8_t> lock(Access) override { return memory_; }
  void unlock(Access) override {}

 private:
  std::vector<std::uint8_t> storage_;
  std::span<std::uint8_t> memory_;
};

// Ports without padding, one after the other in the program's order.
std::vector<PortLayout> dense_layouts(const std::vector<mil::Variable>& variables);

// Takes programs as text and computes them in mil::Simulator: slowly, and as a Neural Engine of the
// profile would, as far as that is known. Compiling parses and checks.
class SimulatorDevice final : public Device {
 public:
  explicit SimulatorDevice(mil::NumericProfile profile);

  std::string_view name() const override { return name_; }
  std::unique_ptr<DeviceProgram> open(const ProgramSource& source) override;
  std::unique_ptr<Surface> new_surface(std::uint64_t bytes) override;

 private:
  const mil::NumericProfile profile_;
  const std::string name_;
};

}  // namespace clefkit::ane
