#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/backend/ane/port_memory.h"
#include "clefkit/backend/ane/simulator_device.h"

// For tests: a device that does what Neural Engines were seen to do (ane.md 2.6 to 2.9).
namespace clefkit::ane {

struct Faults {
  std::size_t max_programs = 127;    // That it takes; one more is refused.
  std::size_t failing_loads = 0;     // The first so many fail.
  std::string failing_compile{};     // The program of that name; says what the compiler would.
  std::string rejected_operation{};  // Programs with it are refused.
  bool has_stale_cache = false;      // Programs count as compiled, and fail to load until purged.
  bool pads_rows = false;            // To 64 bytes.
  bool reverses_ports = false;
  bool adds_output_suffix = false;
  bool checks_surfaces = false;  // 0x1d for small ones and for ones of several sizes.
  bool overflows = false;        // The last output's first element is an infinity.
  bool hangs_at_load = false;
  std::size_t hangs_after_calls = SIZE_MAX;
};

// What tests look at afterwards. What hangs waits for release().
struct FakeState {
  Faults faults;
  std::size_t loaded = 0, most_loaded = 0, compiles = 0, loads = 0, calls = 0;
  std::set<std::string> purged{};

  void wait() {
    std::unique_lock lock(mutex);
    released.wait(lock, [this] { return is_released; });
  }
  void release() {
    const std::lock_guard lock(mutex);
    is_released = true;
    released.notify_all();
  }

  std::mutex mutex{};
  std::condition_variable released{};
  bool is_released = false;
};

class FakeProgram final : public DeviceProgram {
 public:
  FakeProgram(const ProgramSource& source, std::unique_ptr<DeviceProgram> program,
              std::shared_ptr<FakeState> state)
      : source_(source), program_(std::move(program)), state_(std::move(state)) {}
  ~FakeProgram() override {
    if (is_loaded_) --state_->loaded;
  }

  bool is_compiled() const override { return is_stale() || program_->is_compiled(); }
  void compile() override {
    ++state_->compiles;
    if (source_.name == faults().failing_compile) {
      throw Error(ErrorCode::kUnavailable, source_.name, "ANECCompile() FAILED");
    }
    if (!faults().rejected_operation.empty() &&
        source_.mil.find(faults().rejected_operation + "(") != std::string::npos) {
      throw_error(ErrorCode::kUnsupported, source_.name, "the compiler does not take {}",
                  faults().rejected_operation);
    }
    program_->compile();
  }
  void purge() override { state_->purged.insert(source_.name); }

  void load() override {
    ++state_->loads;
    if (faults().hangs_at_load) state_->wait();
    if (is_stale()) {
      throw Error(ErrorCode::kUnavailable, source_.name, "the cached program is of another system");
    }
    if (state_->loads <= faults().failing_loads) {
      throw Error(ErrorCode::kUnavailable, source_.name, "program load failure 0x20004");
    }
    if (state_->loaded >= faults().max_programs) {
      throw TooManyPrograms(source_.name, "program load failure 0x50004");
    }
    program_->load();
    is_loaded_ = true;
    state_->most_loaded = std::max(state_->most_loaded, ++state_->loaded);
    inputs_ = laid_out(program_->inputs());
    outputs_ = laid_out(program_->outputs());
    if (faults().adds_output_suffix) {
      for (PortLayout& output : outputs_) output.name += "@output";
    }
  }
  const std::vector<PortLayout>& inputs() const override { return inputs_; }
  const std::vector<PortLayout>& outputs() const override { return outputs_; }

  void evaluate(std::span<Surface* const> inputs, std::span<Surface* const> outputs) override {
    if (state_->calls++ >= faults().hangs_after_calls) state_->wait();
    check_surfaces(inputs, outputs);
    Dense dense_inputs(program_->inputs()), dense_outputs(program_->outputs());
    copy(inputs_, inputs, dense_inputs, true);
    program_->evaluate(dense_inputs.surfaces, dense_outputs.surfaces);
    copy(outputs_, outputs, dense_outputs, false);
    if (!faults().overflows) return;
    const std::vector<Half> infinity{Half{0x7C00}};
    PortMemory(outputs_.back(), *outputs.back(), Surface::Access::kWrite).write(infinity);
  }

 private:
  struct Dense {
    explicit Dense(const std::vector<PortLayout>& ports) : layouts(ports) {
      for (const PortLayout& port : ports) {
        owned.push_back(std::make_unique<PlainSurface>(port.bytes));
        surfaces.push_back(owned.back().get());
      }
    }
    const std::vector<PortLayout>& layouts;
    std::vector<std::unique_ptr<PlainSurface>> owned;
    std::vector<Surface*> surfaces;
  };

  const Faults& faults() const { return state_->faults; }
  bool is_stale() const {
    return faults().has_stale_cache && !state_->purged.contains(source_.name);
  }

  std::vector<PortLayout> laid_out(std::vector<PortLayout> ports) const {
    if (faults().reverses_ports) std::ranges::reverse(ports);
    for (PortLayout& port : ports) {
      if (!faults().pads_rows) break;
      port.strides[2] = (port.strides[2] + 63) / 64 * 64;
      port.strides[1] = port.strides[2] * static_cast<std::uint64_t>(port.shape[2]);
      port.strides[0] = port.strides[1] * static_cast<std::uint64_t>(port.shape[1]);
      port.bytes = port.strides[0] * static_cast<std::uint64_t>(port.shape[0]);
    }
    return ports;
  }

  void check_surfaces(std::span<Surface* const> inputs, std::span<Surface* const> outputs) const {
    if (!faults().checks_surfaces) return;
    for (const auto& list : {inputs, outputs}) {
      for (Surface* const surface : list) {
        const std::size_t bytes = size_of(*surface);
        if (bytes >= 49'152 && bytes == size_of(*list.front())) continue;
        throw Error(ErrorCode::kUnavailable, source_.name, "processRequest: status 0x1d");
      }
    }
  }
  static std::size_t size_of(Surface& surface) {
    const std::size_t bytes = surface.lock(Surface::Access::kRead).size();
    surface.unlock(Surface::Access::kRead);
    return bytes;
  }

  static void copy(const std::vector<PortLayout>& ports, std::span<Surface* const> surfaces,
                   Dense& dense, bool to_dense) {
    using Access = Surface::Access;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const auto at = std::ranges::find_if(dense.layouts, [&](const PortLayout& layout) {
        return ports[i].name.starts_with(layout.name) &&
               (ports[i].name.size() == layout.name.size() ||
                ports[i].name[layout.name.size()] == '@');
      });
      const auto index = static_cast<std::size_t>(at - dense.layouts.begin());
      std::vector<Half> values(at->bytes / sizeof(Half));
      if (to_dense) {
        PortMemory(ports[i], *surfaces[i], Access::kRead).read(values);
        PortMemory(*at, *dense.surfaces[index], Access::kWrite).write(values);
      } else {
        PortMemory(*at, *dense.surfaces[index], Access::kRead).read(values);
        PortMemory(ports[i], *surfaces[i], Access::kWrite).write(values);
      }
    }
  }

  const ProgramSource source_;
  const std::unique_ptr<DeviceProgram> program_;
  const std::shared_ptr<FakeState> state_;
  std::vector<PortLayout> inputs_, outputs_;
  bool is_loaded_ = false;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(Faults faults) : state_(std::make_shared<FakeState>()) {
    state_->faults = std::move(faults);
  }
  const std::shared_ptr<FakeState>& state() const { return state_; }

  std::string_view name() const override { return "fake"; }
  std::unique_ptr<DeviceProgram> open(const ProgramSource& source) override {
    return std::make_unique<FakeProgram>(source, simulator_.open(source), state_);
  }
  std::unique_ptr<Surface> new_surface(std::uint64_t bytes) override {
    auto surface = std::make_unique<PlainSurface>(bytes);
    // Nobody promised that it comes empty.
    std::ranges::fill(surface->lock(Surface::Access::kWrite), std::uint8_t{0xFF});
    return surface;
  }

 private:
  SimulatorDevice simulator_{mil::NumericProfile::kIdeal};
  const std::shared_ptr<FakeState> state_;
};

}  // namespace clefkit::ane
