#include "clefkit/backend/factory.h"

#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"

namespace clefkit {

std::unique_ptr<Backend> make_backend(std::string_view name, const Model& model,
                                      Precision precision) {
  if (name == "auto" || name == "cpu") return std::make_unique<cpu::CpuBackend>(model, precision);
  if (name == "ane" || name == "simulator" || name.starts_with("simulator:")) {
    throw_error(ErrorCode::kUnsupported, "backend", "{} is not in this build, expected auto or cpu",
                name);
  }
  throw_error(ErrorCode::kInvalidArgument, "backend", "{}, expected auto, cpu, ane or simulator",
              name);
}

}  // namespace clefkit
