#include "clefkit/backend/factory.h"

#include <chrono>
#include <utility>

#include "clefkit/backend/ane/open_device.h"
#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/self_test_record.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/base/error.h"

namespace clefkit {

ChosenBackend choose_backend(std::string_view name, const Model& model, Precision precision,
                             const std::optional<Spellings>& spellings) {
  const auto cpu = [&] { return std::make_unique<cpu::CpuBackend>(model, precision); };
  if (name == "cpu") return {cpu()};
  if (name == "auto" || name == "ane") {
    const ane::AppleFacts facts = ane::apple_facts();
    const auto record = ane::read_self_test_record(ane::self_test_record_path(model.name));
    if (name == "auto") {
      const std::string objection = ane::objection_to_engine(facts, record, model.name);
      if (!objection.empty()) return {cpu(), objection};
    }
    const ane::ProgramForm form{
        .spellings = spellings.value_or(ane::found_spellings(facts, record, model.name))};
    return {std::make_unique<ane::ProgramBackend>(model, ane::open_device("ane"), form, cpu()),
            name == "auto" ? "its self-test has passed on this system and chip" : ""};
  }
  if (std::unique_ptr<ane::Device> simulator = ane::open_device(name)) {
    // One program a layer, so that a trace shows every layer. It is slow, but never hangs.
    const ane::ProgramForm form{.plan = PlanKind::kSplit,
                                .spellings = spellings.value_or(Spellings{})};
    return {std::make_unique<ane::ProgramBackend>(
        model, std::move(simulator), form, cpu(),
        ane::ProgramSetOptions{.call_deadline = std::chrono::hours(24)})};
  }
  throw_error(ErrorCode::kInvalidArgument, "backend", "{}, expected auto, cpu, ane or simulator",
              name);
}

}  // namespace clefkit
