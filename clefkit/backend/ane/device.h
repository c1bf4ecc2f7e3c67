#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/error.h"
#include "clefkit/mil/program.h"

// A Neural Engine, or what stands in for one: the thinnest interface under which Apple's private
// one fits (ane.md 2 and 8.2). It decides nothing: when to compile, what to try again and how long
// to wait is ProgramSet's.
namespace clefkit::ane {

// One program as the compiler takes it.
struct ProgramSource {
  std::string name;  // For messages: "run-00-02".
  std::string mil;   // Its text.
  Bytes weights;     // What mil::kWeightPath names; must outlive the DeviceProgram.
  std::filesystem::path weights_file{};  // That holds the same, if one does.
};

// How a port lies in memory. Only the compiler knows: rows may be padded.
struct PortLayout {
  std::string name;                        // As in the program's text, or with "@output" behind.
  mil::Shape shape;                        // [batches, channels, height, width], FP16.
  std::array<std::uint64_t, 4> strides{};  // Bytes from one index to the next.
  std::uint64_t bytes = 0;                 // In all.
};

// The device holds as many programs as it can: unloading one may help.
class TooManyPrograms : public Error {
 public:
  TooManyPrograms(const std::string& program, const std::string& message)
      : Error(ErrorCode::kUnavailable, program, message) {}
};

// Memory that the device reads or writes: on a Mac an IOSurface.
class Surface {
 public:
  enum class Access { kRead, kWrite };
  virtual ~Surface() = default;
  // Valid until unlock(). The first byte is on 64 bytes.
  virtual std::span<std::uint8_t> lock(Access access) = 0;
  virtual void unlock(Access access) = 0;
};

// A program on its way to the device. Functions throw Error(kUnavailable) with the program's name
// and the device's own words; unloads when it goes.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  // Whether a compiled form is in the system's cache.
  virtual bool is_compiled() const = 0;
  // Error(kUnsupported) when the program is refused for what it says.
  virtual void compile() = 0;
  virtual void purge() = 0;
  // Also TooManyPrograms.
  virtual void load() = 0;
  // After load(), in the device's own order.
  virtual const std::vector<PortLayout>& inputs() const = 0;
  virtual const std::vector<PortLayout>& outputs() const = 0;
  // Blocks. One surface a port, in the order of inputs() and outputs().
  virtual void evaluate(std::span<Surface* const> inputs, std::span<Surface* const> outputs) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;  // "simulator:ideal", "ane"
  virtual std::unique_ptr<DeviceProgram> open(const ProgramSource& source) = 0;
  // Throws Error(kUnavailable).
  virtual std::unique_ptr<Surface> new_surface(std::uint64_t bytes) = 0;
};

}  // namespace clefkit::ane
