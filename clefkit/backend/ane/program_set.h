#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clefkit/backend/ane/device.h"
#include "clefkit/backend/ane/port_memory.h"

namespace clefkit::ane {

// A program that is loaded, with a surface for each port. Ports go by name: the device's order is
// its own.
class LoadedProgram {
 public:
  // Throws Error(kUnavailable) when a surface cannot be had.
  LoadedProgram(std::string name, std::shared_ptr<DeviceProgram> program, Device& device);

  const std::string& name() const { return name_; }
  // Throw Error(kUnavailable) for a name that the device does not report.
  PortMemory input(std::string_view name);
  PortMemory output(std::string_view name);

 private:
  friend class ProgramSet;
  struct Ports {
    const std::vector<PortLayout>* layouts = nullptr;
    std::vector<std::unique_ptr<Surface>> surfaces{};
  };
  // What a call needs, alive as long as the call, which may never return.
  struct Call {
    std::shared_ptr<DeviceProgram> program;
    Ports inputs, outputs;
  };
  PortMemory port(Ports& ports, std::string_view name, Surface::Access access);

  std::string name_;
  std::shared_ptr<Call> call_;
};

struct ProgramSetOptions {
  // macOS keeps 127, perhaps over all of its programs.
  std::size_t max_loaded = 124;
  std::chrono::milliseconds load_deadline{120'000};
  std::chrono::milliseconds call_deadline{30'000};
  std::chrono::milliseconds retry_after{100};
};

// The programs that a model uses on a device: compiled and loaded when first asked for, and let go,
// the least recently used first, when the device takes no more. A load or a call that does not come
// back in time means that the device hangs: it is given up for the life of the process. For one
// thread at a time.
class ProgramSet {
 public:
  using Key = std::pair<std::size_t, std::size_t>;  // The program's number, and its context.

  explicit ProgramSet(Device& device, ProgramSetOptions options = {})
      : device_(device), options_(options) {}

  // `source` is called when it is not loaded. The reference holds until the next get(). Throws
  // Error as the device does, after everything that is known to help was tried.
  LoadedProgram& get(Key key, const std::function<ProgramSource()>& source);

  // Runs it on what its inputs hold. Throws Error: kUnavailable with the device's words and when it
  // hangs, kOverflow when an output is not finite.
  void evaluate(LoadedProgram& program);

  std::size_t loaded() const { return programs_.size(); }

 private:
  struct Entry {
    Key key;
    LoadedProgram program;
  };

  std::shared_ptr<DeviceProgram> load(const ProgramSource& source);
  // Throws what `call` throws. One that hangs keeps its thread and what it has captured for good.
  void within(std::chrono::milliseconds deadline, const std::string& program,
              std::function<void()> call);
  void require_responsive() const;

  Device& device_;
  const ProgramSetOptions options_;
  std::list<Entry> programs_;  // The most recently used first.
  bool hangs_ = false;
};

}  // namespace clefkit::ane
