#pragma once

#include <memory>
#include <string_view>

#include "clefkit/backend/ane/device.h"

namespace clefkit::ane {

// The device of a backend's name: "ane", "simulator", "simulator:m5". Null for a backend without
// one. Throws Error: kInvalidArgument for a profile that is none, kUnavailable for "ane" where
// there is none.
std::unique_ptr<Device> open_device(std::string_view backend);

}  // namespace clefkit::ane
