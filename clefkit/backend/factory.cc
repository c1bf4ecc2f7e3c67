#include "clefkit/backend/factory.h"

#include <utility>

#include "clefkit/backend/ane/open_device.h"
#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/self_test_record.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"

namespace clefkit {

ChosenBackend choose_backend(std::string_view name, const Model& model, Precision precision) {
  const auto cpu = [&] { return std::make_unique<cpu::CpuBackend>(model, precision); };
  // A device of ours shows every layer in a trace; a Neural Engine takes only so many programs.
  const auto programs = [&](std::unique_ptr<ane::Device> device, PlanKind plan) {
    return std::make_unique<ane::ProgramBackend>(model, std::move(device), plan, cpu());
  };
  if (name == "cpu") return {cpu()};
  if (name == "auto") {
    const std::string objection = ane::objection_to_engine(
        ane::apple_facts(), ane::read_self_test_record(ane::self_test_record_path(model.name)),
        model.name);
    if (!objection.empty()) return {cpu(), objection};
    return {programs(ane::open_device("ane"), PlanKind::kGrouped),
            "its self-test has passed on this system and chip"};
  }
  if (std::unique_ptr<ane::Device> device = ane::open_device(name)) {
    const PlanKind plan = name == "ane" ? PlanKind::kGrouped : PlanKind::kSplit;
    return {programs(std::move(device), plan)};
  }
  throw_error(ErrorCode::kInvalidArgument, "backend", "{}, expected auto, cpu, ane or simulator",
              name);
}

}  // namespace clefkit
