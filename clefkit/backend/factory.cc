#include "clefkit/backend/factory.h"

#include <chrono>
#include <utility>

#include "clefkit/backend/ane/open_device.h"
#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/self_test_record.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"

namespace clefkit {

ChosenBackend choose_backend(std::string_view name, const Model& model, Precision precision) {
  const auto cpu = [&] { return std::make_unique<cpu::CpuBackend>(model, precision); };
  const auto neural_engine = [&] {
    return std::make_unique<ane::ProgramBackend>(model, ane::open_device("ane"), PlanKind::kGrouped,
                                                 cpu());
  };
  if (name == "cpu") return {cpu()};
  if (name == "auto") {
    const std::string objection = ane::objection_to_engine(
        ane::apple_facts(), ane::read_self_test_record(ane::self_test_record_path(model.name)),
        model.name);
    if (!objection.empty()) return {cpu(), objection};
    return {neural_engine(), "its self-test has passed on this system and chip"};
  }
  if (name == "ane") return {neural_engine()};
  if (std::unique_ptr<ane::Device> simulator = ane::open_device(name)) {
    // One program a layer, so that a trace shows every layer. It is slow, but never hangs.
    return {std::make_unique<ane::ProgramBackend>(
        model, std::move(simulator), PlanKind::kSplit, cpu(),
        ane::ProgramSetOptions{.call_deadline = std::chrono::hours(24)})};
  }
  throw_error(ErrorCode::kInvalidArgument, "backend", "{}, expected auto, cpu, ane or simulator",
              name);
}

}  // namespace clefkit
