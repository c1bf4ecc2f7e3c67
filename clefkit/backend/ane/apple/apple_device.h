#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "clefkit/backend/ane/device.h"

// Apple's Neural Engine through the private framework AppleNeuralEngine (ane.md 2). Nothing of it
// has run on a Mac yet: on Linux it runs against a stand-in of the framework (tests/ane_framework).
namespace clefkit::ane {

struct AppleOptions {
  // Opened at run time: it lies in the system's shared cache, and in no file.
  std::string framework =
      "/System/Library/PrivateFrameworks/AppleNeuralEngine.framework/AppleNeuralEngine";
  // Compiles one program and ends; empty: clefkit-ane-compiler beside this program.
  std::filesystem::path compiler{};
  // After a compilation that failed: the system's compiler service starts anew, and others were
  // seen to fail meanwhile (ane.md 2.9).
  std::chrono::milliseconds pause_after_failure{15'000};
  // A compiler that takes longer is killed. How long the largest program takes nobody here knows.
  std::chrono::milliseconds compile_deadline{600'000};
};

// What this machine says of its Neural Engine.
struct AppleFacts {
  std::string problem{};               // Why it cannot be used; empty: nothing speaks against it.
  std::vector<std::string> missing{};  // Of the framework: "-[_ANEInMemoryModel queueDepth]".
  std::string chip{};                  // "h16g"; empty when the framework does not tell.
  std::string system{};                // "Version 26.1 (Build 25B78)"
  unsigned cores = 0;
};
AppleFacts apple_facts(const AppleOptions& options = {});

// Throws Error(kUnavailable) with apple_facts().problem.
std::unique_ptr<Device> open_apple_device(const AppleOptions& options = {});

// Compiles a program into the system's cache within this process; what clefkit-ane-compiler does.
// Its text and weights must lie where the framework looks for them, as DeviceProgram::compile puts
// them. Throws Error as that.
void compile_in_this_process(const ProgramSource& source, const AppleOptions& options);

}  // namespace clefkit::ane
