#include "clefkit/backend/ane/simulator_device.h"

#include <fmt/format.h>

#include <cassert>
#include <optional>

#include "clefkit/backend/ane/port_memory.h"
#include "clefkit/base/error.h"
#include "clefkit/mil/checker.h"
#include "clefkit/mil/parser.h"
#include "clefkit/mil/simulator.h"

namespace clefkit::ane {
namespace {

constexpr std::uint64_t kAlignment = 64;

std::vector<Half> halves_of(const mil::Tensor& tensor) {
  std::vector<Half> halves;
  halves.reserve(tensor.values.size());
  for (const float value : tensor.values) halves.push_back(to_half(value));
  return halves;
}

class SimulatorProgram final : public DeviceProgram {
 public:
  SimulatorProgram(const ProgramSource& source, mil::NumericProfile profile)
      : name_(source.name), text_(source.mil), profile_(profile) {
    if (source.weights.empty()) return;
    weights_.emplace(source.weights, source.name);
    files_.emplace(mil::kWeightPath, &*weights_);
  }

  bool is_compiled() const override { return program_.has_value(); }
  void compile() override {
    mil::Program program = mil::parse_program(text_, name_);
    mil::require_sound(program, files_, ErrorCode::kUnsupported, name_);
    program_ = std::move(program);
  }
  void purge() override { program_.reset(); }

  void load() override {
    assert(program_);
    simulator_.emplace(*program_, files_, profile_);
    inputs_ = dense_layouts(program_->functions.at(0).inputs);
    outputs_ = dense_layouts(mil::output_variables(program_->functions.at(0)));
  }
  const std::vector<PortLayout>& inputs() const override { return inputs_; }
  const std::vector<PortLayout>& outputs() const override { return outputs_; }

  void evaluate(std::span<Surface* const> inputs, std::span<Surface* const> outputs) override {
    mil::Tensors values;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      mil::Tensor tensor = mil::zeros(inputs_[i].shape);
      std::vector<Half> halves(tensor.values.size());
      PortMemory(inputs_[i], *inputs[i], Surface::Access::kRead).read(halves);
      for (std::size_t k = 0; k < halves.size(); ++k) tensor.values[k] = to_float(halves[k]);
      values.emplace(inputs_[i].name, std::move(tensor));
    }
    const mil::Tensors results = simulator_->run(values);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      PortMemory(outputs_[i], *outputs[i], Surface::Access::kWrite)
          .write(halves_of(results.at(outputs_[i].name)));
    }
  }

 private:
  const std::string name_, text_;
  std::optional<mil::WeightBlobReader> weights_;
  mil::WeightFiles files_;
  const mil::NumericProfile profile_;
  std::optional<mil::Program> program_;
  std::optional<mil::Simulator> simulator_;
  std::vector<PortLayout> inputs_, outputs_;
};

}  // namespace

PlainSurface::PlainSurface(std::uint64_t bytes) : storage_(bytes + kAlignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  memory_ = std::span(storage_).subspan((kAlignment - address % kAlignment) % kAlignment, bytes);
}

std::vector<PortLayout> dense_layouts(const std::vector<mil::Variable>& variables) {
  std::vector<PortLayout> layouts;
  for (const mil::Variable& variable : variables) {
    assert(variable.type.shape.size() == 4);
    PortLayout layout{.name = variable.name, .shape = variable.type.shape};
    layout.bytes = sizeof(Half);
    for (std::size_t axis = 4; axis-- > 0;) {
      layout.strides[axis] = layout.bytes;
      layout.bytes *= static_cast<std::uint64_t>(layout.shape[axis]);
    }
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

SimulatorDevice::SimulatorDevice(mil::NumericProfile profile)
    : profile_(profile), name_(fmt::format("simulator:{}", to_string(profile))) {}

std::unique_ptr<DeviceProgram> SimulatorDevice::open(const ProgramSource& source) {
  return std::make_unique<SimulatorProgram>(source, profile_);
}

std::unique_ptr<Surface> SimulatorDevice::new_surface(std::uint64_t bytes) {
  return std::make_unique<PlainSurface>(bytes);
}

}  // namespace clefkit::ane
